/** Where the snapshots of a sandbox are, by name. */
export interface SnapshotStore {
  /** In alphabetical order. */
  list(): Promise<readonly { readonly name: string; readonly bytes: number }[]>;
  /** At most the first `maxBytes` bytes. Undefined for an unknown name. */
  read(name: string, maxBytes?: number): Promise<Buffer | undefined>;
  /** Replaces an existing one. */
  write(name: string, content: readonly Buffer[]): Promise<void>;
  /** False for an unknown name. */
  remove(name: string): Promise<boolean>;
}
