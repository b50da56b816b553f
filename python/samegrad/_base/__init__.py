"""What everything else stands on, without the engine: element types, structures, enums."""
