import type { MetadataStorage, MikroORM, Options } from '@mikro-orm/core';
import type { Entities, Orm } from './open-database.ts';

/** The class of one kind of database. */
type OrmClass = new (options: Options) => MikroORM;

/** What was discovered about the entities, and the functions that were generated for them, by the class of the ORM. */
const discovered = new WeakMap<Entities, Map<unknown, MikroORM>>();

/** The metadata that the prototypes of entities refer to. */
let decoratedWith: MetadataStorage | undefined;

/**
 * Creates the ORM of a database. The first one of a kind in this process discovers the entities; further ones share
 * what it found, which does not depend on the database and takes most of the time in which an empty one opens.
 *
 * NOTE: sets up the driver as the constructor of MikroORM does after its discovery.
 */
export function openOrm(ormClass: unknown, entities: Entities, options: Partial<Options>): Orm {
  const known = discovered.get(entities) ?? new Map<unknown, MikroORM>();
  discovered.set(entities, known);
  const make = (more: Partial<Options>): MikroORM =>
    new (ormClass as OrmClass)({ ...options, ...more } as Options);
  const first = known.get(ormClass);
  if (first === undefined) {
    const made = make({ entities: [...entities] });
    decoratedWith = made.getMetadata();
    known.set(ormClass, made);
    return quickToFork(made) as unknown as Orm;
  }
  const metadata = first.getMetadata();
  const orm = make({ entities: [...entities], discovery: { skipSyncDiscovery: true } });
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
  return quickToFork(Object.assign(orm, { em, getMetadata: () => metadata })) as unknown as Orm;
}

/**
 * HOT: each fork of the entity manager, so each request, sets and resets an option of the configuration, which each time
 * copies settings into the environment of the process and the logger (a tenth of the CPU of reading a wallet). They do
 * not change once the ORM is open.
 */
function quickToFork<Opened extends MikroORM>(orm: Opened): Opened {
  return Object.assign(orm, { config: Object.assign(orm.config, { sync: () => undefined }) });
}
