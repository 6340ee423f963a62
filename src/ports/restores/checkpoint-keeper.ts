/** A signed checkpoint of the audit log, and which restore of the database was the last one then. */
export interface KeptCheckpoint {
  /** The signed note (C2SP tlog-checkpoint). */
  readonly note: string;
  /** When that restore was noticed, Unix ms; null without one. */
  readonly restoredAtMs: number | null;
}

/** Keeps the last signed checkpoint where someone who can write to the database cannot. */
export interface CheckpointKeeper {
  /** Undefined before the first one is kept. */
  read(): Promise<KeptCheckpoint | undefined>;
  /** The checkpoint from before another restore stays beside it. */
  keep(checkpoint: KeptCheckpoint): Promise<void>;
}
