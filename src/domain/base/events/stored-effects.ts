import type { SqlEntityManager } from '@mikro-orm/sql';
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
export function noteEvent(em: SqlEntityManager, event: { readonly id: string; readonly type: string }): void {
  effectsIn(em).events.push(event);
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

function effectsIn(em: SqlEntityManager): Effects {
  let effects = stored.get(em);
  if (effects === undefined) {
    effects = { events: [], transactions: [], policies: [] };
    stored.set(em, effects);
  }
  return effects;
}
