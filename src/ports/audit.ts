import type { UnitContext } from './unit-notes.ts';

/** Who acted, without personal data. */
export interface AuditActor {
  /** How the actor was identified; `anonymous`: not at all. */
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
  /** Where an operator's call came from. */
  readonly origin?: string | undefined;
  readonly job?: string | undefined;
}

/** One line of the audit log. */
export interface AuditRecord {
  /** Unix ms. */
  readonly atMs: number;
  readonly by: AuditActor;
  /** The app that it was done to or for; null if it concerns none. */
  readonly appId: string | null;
  /** operationId, the name of a command's action, or the name of a job. */
  readonly operation: string;
  readonly requestId?: string | undefined;
  /** The work after the commit of a request, such as a broadcast. */
  readonly phase?: 'after_commit' | undefined;
  /** Digest of the request. */
  readonly request?: string | undefined;
  /** Ids and roles by name; never text that could be personal or secret. */
  readonly ids: Readonly<Record<string, string | readonly string[]>>;
  /** The kinds of changes that the operation does not imply: types of events. */
  readonly changes?: readonly string[] | undefined;
  readonly decision: 'allow' | 'deny';
  /** The status of the response, if there is one. */
  readonly status?: number | undefined;
  /** The error code of a refusal. */
  readonly code?: string | undefined;
  /** How many denials before this one were not recorded. */
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
   * Writes a record in the unit of work of what it records.
   *
   * @param options `isLast`: nothing follows in the unit of work but its commit.
   * @throws ApiError unavailable when it cannot be written, so that nothing happens without its record.
   */
  record(unit: UnitContext, record: AuditRecord, options?: { readonly isLast?: boolean }): Promise<void>;
  /** The digest of a request; without the key of the log it cannot be inverted by trying all requests. */
  digest(method: string, target: string, body: Uint8Array): string;
}

/** Whether changes must wait, because the database may lack what was done before. */
export interface WriteFreeze {
  /** Why they must wait now; undefined if they need not. */
  reason(): string | undefined;
  /** The same, after waiting a moment for what is uncertain. */
  settled(): Promise<string | undefined>;
}

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
  /** The checkpoint from before another restore is kept next to it. */
  keep(checkpoint: KeptCheckpoint): Promise<void>;
}
