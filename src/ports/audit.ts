import type { UnitContext } from './operation-context.ts';

/** The actor of an action, without personal data. */
export interface AuditActor {
  /** How the actor was identified. `anonymous` means that it was not identified. */
  readonly kind: 'app_secret' | 'user_token' | 'web_page' | 'oauth_client' | 'anonymous' | 'operator' | 'job';
  readonly appId?: string | undefined;
  /** The app that was named together with rejected credentials, if any. */
  readonly claimedAppId?: string | undefined;
  readonly userId?: string | undefined;
  readonly sessionId?: string | undefined;
  /** The fingerprints of the public keys whose signatures authorized the request, if any did. */
  readonly signers?: readonly string[] | undefined;
  readonly operatorId?: string | undefined;
  readonly role?: string | undefined;
  /** Where an operator's call came from. Only for operators. */
  readonly origin?: string | undefined;
  readonly job?: string | undefined;
}

/** One line of the audit log. */
export interface AuditRecord {
  /** Unix ms. */
  readonly atMs: number;
  readonly by: AuditActor;
  /** The app that the action concerns; null if it concerns no app. */
  readonly appId: string | null;
  /** The operationId, the name of an operator's command, or the name of a job. */
  readonly operation: string;
  readonly requestId?: string | undefined;
  /** Set for work after the commit of a request, such as a broadcast. */
  readonly phase?: 'after_commit' | undefined;
  /** The digest that `AuditTrail.digest` returns for the request. */
  readonly request?: string | undefined;
  /** Ids and roles by name. Never values that could be personal or secret. */
  readonly ids: Readonly<Record<string, string | readonly string[]>>;
  /** The types of events that report changes beyond those that the operation implies, if there are any. */
  readonly changes?: readonly string[] | undefined;
  readonly decision: 'allow' | 'deny';
  /** The status of the response, if there is one. */
  readonly status?: number | undefined;
  /** The error code, if the request was refused. */
  readonly code?: string | undefined;
  /** The number of denials before this one that were not recorded, if any. */
  readonly omitted?: number | undefined;
}

/** A change in a unit of work beyond those that its operation implies. */
export interface AuditedChange {
  readonly appId: string | null;
  /** The type of an event, such as `transaction.confirmed`, or another name. */
  readonly what: string;
  /** The id of the changed resource, if there is one. */
  readonly id: string | null;
}

/** Writes the audit log. */
export interface AuditTrail {
  /**
   * Writes a record in the unit of work of the recorded action.
   *
   * @param options `isLast` means that only the commit follows in the unit of work.
   * @throws ApiError unavailable when the record cannot be written, so that nothing happens without its record.
   */
  record(unit: UnitContext, record: AuditRecord, options?: { readonly isLast?: boolean }): Promise<void>;
  /**
   * Returns a keyed digest of a request. Without the key of the log, nobody can find the request by trying candidates.
   */
  digest(method: string, target: string, body: Uint8Array): string;
}

/** Decides whether changes must wait, because the database may lack earlier changes. */
export interface WriteFreeze {
  /** Returns the reason why changes must wait now. Undefined if they need not wait. */
  reason(): string | undefined;
  /** Waits a short time for an uncertainty to end, then returns the reason. Undefined if changes need not wait. */
  settled(): Promise<string | undefined>;
  /**
   * Returns when the last known restore was noticed, in Unix ms, even if an operator has released the server since.
   * What was read from the database before then no longer counts as evidence. Undefined if no restore is known.
   */
  restoredAtMs(): number | undefined;
}

/** A signed checkpoint of the audit log, and the last known restore of the database at that time. */
export interface KeptCheckpoint {
  /** The signed note (C2SP tlog-checkpoint). */
  readonly note: string;
  /** When that restore was noticed, in Unix ms; null if there was none. */
  readonly restoredAtMs: number | null;
}

/**
 * Stores the last signed checkpoint outside the database, where someone with write access to the database cannot change
 * it.
 */
export interface CheckpointKeeper {
  /** Returns the last checkpoint; undefined before one is stored. */
  read(): Promise<KeptCheckpoint | undefined>;
  /** Stores a checkpoint. A checkpoint from before a restore is kept as well, next to the new one. */
  keep(checkpoint: KeptCheckpoint): Promise<void>;
}
