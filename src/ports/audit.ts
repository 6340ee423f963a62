import type { UnitContext } from './operation-context.ts';

/** The actor of an action, without personal data. */
export interface AuditActor {
  /** How the actor was identified. `anonymous` means that it was not identified. */
  readonly kind: 'app_secret' | 'user_token' | 'web_page' | 'oauth_client' | 'anonymous' | 'operator' | 'job';
  readonly appId?: string | undefined;
  /** The app that rejected credentials named. */
  readonly claimedAppId?: string | undefined;
  readonly userId?: string | undefined;
  readonly sessionId?: string | undefined;
  /** Fingerprints of the public keys whose signatures authorized the request. */
  readonly signers?: readonly string[] | undefined;
  readonly operatorId?: string | undefined;
  readonly role?: string | undefined;
  /** The origin of an operator's call. */
  readonly origin?: string | undefined;
  readonly job?: string | undefined;
}

/** One line of the audit log. */
export interface AuditRecord {
  /** Unix ms. */
  readonly atMs: number;
  readonly by: AuditActor;
  /** The app that the action concerns. Null if it concerns none. */
  readonly appId: string | null;
  /** The operationId, the name of a command's action, or the name of a job. */
  readonly operation: string;
  readonly requestId?: string | undefined;
  /** The work after the commit of a request, such as a broadcast. */
  readonly phase?: 'after_commit' | undefined;
  /** Digest of the request. */
  readonly request?: string | undefined;
  /** Ids and roles by name; never text that could be personal or secret. */
  readonly ids: Readonly<Record<string, string | readonly string[]>>;
  /** The types of events that report changes which the operation does not imply. */
  readonly changes?: readonly string[] | undefined;
  readonly decision: 'allow' | 'deny';
  /** The status of the response, if there is one. */
  readonly status?: number | undefined;
  /** The error code of a refusal. */
  readonly code?: string | undefined;
  /** The number of denials before this one that were not recorded. */
  readonly omitted?: number | undefined;
}

/** The changes of one unit of work that its operation does not imply. */
export interface AuditedChange {
  readonly appId: string | null;
  /** The type of an event, such as `transaction.confirmed`, or another name. */
  readonly what: string;
  /** The resource. */
  readonly id: string | null;
}

/** Writes the audit log. */
export interface AuditTrail {
  /**
   * Writes a record in the unit of work of the recorded action.
   *
   * @param options `isLast` means that only the commit follows in the unit of work.
   * @throws ApiError unavailable when it cannot be written, so that nothing happens without its record.
   */
  record(unit: UnitContext, record: AuditRecord, options?: { readonly isLast?: boolean }): Promise<void>;
  /** The digest of a request. Without the key of the log, nobody can invert it by trying all requests. */
  digest(method: string, target: string, body: Uint8Array): string;
}

/** Decides whether changes must wait, because the database may lack earlier changes. */
export interface WriteFreeze {
  /** Returns the reason why changes must wait now. Undefined if they need not wait. */
  reason(): string | undefined;
  /** Returns the reason after a short wait for the end of an uncertainty. */
  settled(): Promise<string | undefined>;
}

/** A signed checkpoint of the audit log, and the last restore of the database at that time. */
export interface KeptCheckpoint {
  /** The signed note (C2SP tlog-checkpoint). */
  readonly note: string;
  /** When that restore was noticed, in Unix ms. Null without a restore. */
  readonly restoredAtMs: number | null;
}

/** Stores the last signed checkpoint at a place to which a person with write access to the database has no access. */
export interface CheckpointKeeper {
  /** Returns undefined before the first checkpoint is stored. */
  read(): Promise<KeptCheckpoint | undefined>;
  /** Stores a checkpoint. A checkpoint from before another restore is kept next to it. */
  keep(checkpoint: KeptCheckpoint): Promise<void>;
}
