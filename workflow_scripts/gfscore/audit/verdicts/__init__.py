"""The gate: rules and statistics, models at the gate, the verdict, its findings, and plans of samples."""
