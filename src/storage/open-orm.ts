import type { MetadataStorage, Options } from '@mikro-orm/core';
import type { Database, Entities, Orm } from './open-database.ts';

/** Creates the ORM of one kind of database. */
type CreateOrm = (options: Partial<Pick<Options, 'entities' | 'discovery'>>) => Orm;

/** What was discovered about the entities, and the functions that were generated for them, by the kind of the database. */
const discovered = new WeakMap<Entities, Map<Database['kind'], Orm>>();

/** The metadata that the prototypes of entities refer to. */
let decoratedWith: MetadataStorage | undefined;

/**
 * Creates the ORM of a database. The first one of a kind in this process discovers the entities; further ones share
 * what it found, which does not depend on the database and takes most of the time in which an empty one opens.
 *
 * NOTE: sets up the driver as the constructor of MikroORM does after its discovery.
 */
export function openOrm(kind: Database['kind'], entities: Entities, create: CreateOrm): Orm {
  const known = discovered.get(entities) ?? new Map<Database['kind'], Orm>();
  discovered.set(entities, known);
  const first = known.get(kind);
  if (first === undefined) {
    const made = create({ entities: [...entities] });
    decoratedWith = made.getMetadata();
    known.set(kind, made);
    return quickToFork(made);
  }
  const metadata = first.getMetadata();
  const orm = create({ entities: [...entities], discovery: { skipSyncDiscovery: true } });
  Object.assign(orm.config, {
    getComparator: () => first.config.getComparator(metadata),
    getHydrator: () => first.config.getHydrator(metadata),
  });
  orm.driver.setMetadata(metadata);
  const em = orm.driver.createEntityManager();
  Object.assign(em, { global: true });
  // Prototypes refer to one kind of database at a time, the last one that was opened.
  if (decoratedWith !== metadata) metadata.decorate(em);
  decoratedWith = metadata;
  return quickToFork(Object.assign(orm, { em, getMetadata: () => metadata }));
}

/**
 * HOT: each fork of the entity manager, so each request, sets and resets an option of the configuration, which each time
 * copies settings into the environment of the process and the logger (a tenth of the CPU of reading a wallet). They do
 * not change once the ORM is open.
 */
function quickToFork(orm: Orm): Orm {
  return Object.assign(orm, { config: Object.assign(orm.config, { sync: () => undefined }) });
}
