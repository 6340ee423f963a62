/** Whether changes must wait, because the database may lack what was done before. */
export interface ChangeHold {
  /** Why they must wait now; undefined if they need not. */
  reason(): string | undefined;
  /** The same, after waiting a moment for what is uncertain. */
  settled(): Promise<string | undefined>;
}
