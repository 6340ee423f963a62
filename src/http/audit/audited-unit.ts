import type { SqlEntityManager } from '@mikro-orm/sql';
import type { AuditedChange, AuditRecord, AuditTrail } from '../../ports/audit/audit-trail.ts';
import type { OpenUnit } from '../unit-of-work.ts';

/** Ids in one record at most. */
export const MAX_IDS = 100;

/** Units of work that record what they changed as they commit. Those that changed nothing record nothing. */
export function recordingChanges(
  openUnit: OpenUnit,
  audit: AuditTrail,
  describe: () => Pick<AuditRecord, 'atMs' | 'by' | 'operation' | 'requestId' | 'phase'>,
): OpenUnit {
  return async (write) => {
    const unit = await openUnit(write);
    return {
      ...unit,
      async commit(last) {
        await recordChanges(unit.em, audit, describe);
        await unit.commit(last);
      },
    };
  };
}

async function recordChanges(
  em: SqlEntityManager,
  audit: AuditTrail,
  describe: Parameters<typeof recordingChanges>[2],
): Promise<void> {
  const changes = audit.changesOf(em);
  if (changes.length === 0) return;
  for (const [appId, ofApp] of Map.groupBy(changes, (change) => change.appId)) {
    await audit.record(em, { ...describe(), appId, decision: 'allow', ...namesOf(ofApp) });
  }
}

/** What was changed, and the ids of it. */
function namesOf(changes: readonly AuditedChange[]): Pick<AuditRecord, 'changes' | 'ids'> {
  const ids = new Set(changes.flatMap(({ id }) => id ?? []));
  return {
    changes: [...new Set(changes.map(({ what }) => what))],
    ids: ids.size === 0 ? {} : { changed: [...ids].slice(0, MAX_IDS) },
  };
}
