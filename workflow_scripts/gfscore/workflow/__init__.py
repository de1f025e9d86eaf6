"""The workflow around the package: its configuration, the plan of a run, what a job does around its step, the command.

From the file to the plan: `config_files` reads YAML with the line of every value, `resolving` completes it (its state
is a `resolution`), `configuration` checks that it is consistent, `plan` makes a `Run` of it, whose audits, models,
datasets and mappers (`entries`) know their files. `audit_steps` has inputs and params of the steps of an audit,
`targets` the files of the Snakefile's targets. `resolved_file` writes and reads the complete configuration of an audit.

Around a step: `jobs`, `prepared` (its process), `job_devices`, `sources` (its code), `user_files` and `replaced_files`.
What a user calls: `command`, `running`, `gate`, `audit_check`, `new_audit` and `bundling`.

What the Snakefile imports, here and in other layers, imports neither numpy nor pandas nor torch; a test asserts it.
"""
