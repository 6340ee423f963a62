import { strict as assert } from 'node:assert';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { LRUCache } from 'lru-cache';
import type { OperationContext } from '../../../operation-context.ts';
import type { Safeguards } from '../../../ports/safeguards.ts';
import { prepareQuery } from '../../prepared-query.ts';

// HOT: runs for every request that an owner signs (bench `https`, 2-of-3 signature); the entity manager takes about ten
// times the CPU per row read.
const selectSettings = prepareQuery<{ appId: string }, { settings: string }>((database, { appId }) =>
  database.selectFrom('apps').select('settings').where('id', '=', appId),
);

/** The safeguards in force for the app of a request: its settings, then the server's defaults. */
export async function readSafeguards({
  app,
  em,
  safeguards: defaults,
}: Pick<OperationContext, 'app' | 'em' | 'safeguards'>): Promise<Safeguards> {
  const reader: SqlEntityManager & Reader = em;
  const before = reader[readBefore];
  if (before?.appId === app.id) return withSettings(defaults, before.settings);
  const {
    rows: [row],
  } = await selectSettings(em, { appId: app.id });
  assert(row !== undefined, `app ${app.id} has sent a request and does not exist`);
  if (em.isInTransaction()) reader[readBefore] = { appId: app.id, settings: row.settings };
  return withSettings(defaults, row.settings);
}

/**
 * What a transaction has read, so that all its steps judge by the same settings. No request changes its own app's and
 * then reads them.
 *
 * HOT: on the entity manager and not in a WeakMap: V8 keeps the values of one that is old until a full garbage
 * collection.
 */
const readBefore = Symbol('the settings that were read before');

interface Reader {
  [readBefore]?: { readonly appId: string; readonly settings: string };
}

/** What settings, as they are stored, make of the defaults of a server. */
const merged = new WeakMap<Safeguards, LRUCache<string, Safeguards>>();

function withSettings(defaults: Safeguards, stored: string): Safeguards {
  const ofDefaults = merged.get(defaults) ?? new LRUCache<string, Safeguards>({ max: 1000 });
  merged.set(defaults, ofDefaults);
  const known = ofDefaults.get(stored);
  if (known !== undefined) return known;
  const settings = JSON.parse(stored) as Record<string, unknown>;
  const set = Object.keys(defaults).filter((name) => settings[name] !== undefined);
  const safeguards = { ...defaults, ...Object.fromEntries(set.map((name) => [name, settings[name]])) };
  ofDefaults.set(stored, safeguards);
  return safeguards;
}
