import type { SqlEntityManager } from '@mikro-orm/sql';
import type { AuditedChange } from '../../../ports/audit/audit-trail.ts';
import type { StoredEffects } from '../../../ports/request-recorder.ts';
import { savepointsOf } from '../../../storage/savepoint.ts';

interface Effects extends StoredEffects {
  readonly events: { id: string; type: string }[];
  readonly transactions: string[];
  readonly policies: string[];
}

/** By unit of work, so that what it stored is known when it commits. */
const stored = new WeakMap<SqlEntityManager, Effects>();

/** Notes an event that the unit of work of `em` records. */
export function noteEvent(
  em: SqlEntityManager,
  {
    id,
    type,
    appId,
    resourceId,
  }: {
    readonly id: string;
    readonly type: string;
    readonly appId: string;
    readonly resourceId: string | null;
  },
): void {
  effectsIn(em).events.push({ id, type });
  noteChange(em, { appId, what: type, id: resourceId });
}

/** Notes a transaction that the unit of work of `em` stores. */
export function noteTransaction(em: SqlEntityManager, id: string): void {
  effectsIn(em).transactions.push(id);
}

/** Notes the policies that allowed what the unit of work of `em` does. */
export function notePolicies(em: SqlEntityManager, ids: readonly string[]): void {
  if (ids.length > 0) effectsIn(em).policies.push(...ids);
}

/** What the unit of work of `em` has stored, with its savepoints that were not rolled back. */
export function effectsOf(em: SqlEntityManager): readonly StoredEffects[] {
  const own = stored.get(em);
  return [...(own === undefined ? [] : [own]), ...savepointsOf(em).flatMap(effectsOf)];
}

/** By unit of work, as `stored`. */
const changed = new WeakMap<SqlEntityManager, AuditedChange[]>();

/**
 * Notes that the unit of work of `em` changes something. Events note it themselves.
 *
 * CHOICE: what a job does is in the audit log if it records an event or notes a change. Leases, due times, read
 * positions and the deletion of expired rows are how jobs work; they are not recorded.
 */
export function noteChange(em: SqlEntityManager, change: AuditedChange): void {
  const changes = changed.get(em);
  if (changes === undefined) changed.set(em, [change]);
  else changes.push(change);
}

/** What the unit of work of `em` has changed, with its savepoints that were not rolled back. */
export function changesOf(em: SqlEntityManager): readonly AuditedChange[] {
  const own = changed.get(em) ?? [];
  const savepoints = savepointsOf(em);
  return savepoints.length === 0 ? own : [...own, ...savepoints.flatMap(changesOf)];
}

function effectsIn(em: SqlEntityManager): Effects {
  let effects = stored.get(em);
  if (effects === undefined) {
    effects = { events: [], transactions: [], policies: [] };
    stored.set(em, effects);
  }
  return effects;
}
