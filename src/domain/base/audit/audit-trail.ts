import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import type { SqlEntityManager } from '@mikro-orm/sql';
import type { AuditTrail } from '../../../ports/audit/audit-trail.ts';
import type { Entropy } from '../../../ports/entropy.ts';
import type { KeyVault } from '../../../ports/key-vault.ts';
import { changesOf } from '../events/stored-effects.ts';
import { ensureAuditKeys, openDigestKey } from './audit-keys.ts';
import { writeRecord } from './write-record.ts';

interface TrailOptions {
  readonly vault: KeyVault;
  readonly entropy: Entropy;
  /** Reads outside any transaction. */
  reader(): SqlEntityManager;
  inUnit<T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T>;
}

/** The audit log of a server. */
export interface StoredAuditTrail extends AuditTrail {
  /** Reads the keys of the log, or creates them; before the first record, and after the database was replaced. */
  open(): Promise<void>;
}

export function createAuditTrail({ vault, entropy, reader, inUnit }: TrailOptions): StoredAuditTrail {
  let key: KeyObject | undefined;
  return {
    async open() {
      await ensureAuditKeys({ em: reader(), vault, entropy, inUnit });
      const bytes = await openDigestKey({ em: reader(), vault });
      // NOTE: computing an HMAC with a raw key takes four times as long as with an imported one.
      key = createSecretKey(bytes);
      bytes.fill(0);
    },
    record: writeRecord,
    digest(method, target, body) {
      if (key === undefined) throw new Error('the audit log is not open');
      // HMAC-SHA-256(method || 0x0A || target || 0x0A || body)
      return createHmac('sha256', key).update(`${method}\n${target}\n`).update(body).digest('base64');
    },
    changesOf,
  };
}
