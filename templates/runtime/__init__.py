"""The parts of the package that do not depend on the schema."""
