import type { MetadataStorage, Options } from '@mikro-orm/core';
import type { Database, Entities, Orm } from './open-database.ts';

/** Creates the ORM for one kind of database. */
type CreateOrm = (options: Partial<Pick<Options, 'entities' | 'discovery'>>) => Orm;

/** The discovered metadata of the entities, and the functions generated for them, by kind of database. */
const discovered = new WeakMap<Entities, Map<Database['kind'], Orm>>();

/** The metadata to which the prototypes of entities refer. */
let decoratedWith: MetadataStorage | undefined;

/**
 * Creates the ORM of a database. The first ORM of a kind in this process discovers the entities. Later ones share the
 * result, because discovery takes most of the time of opening an empty database and does not depend on it.
 *
 * NOTE: sets up the driver like the constructor of MikroORM does after its discovery.
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
  // Prototypes refer to one kind of database at a time: the kind that was opened last.
  if (decoratedWith !== metadata) metadata.decorate(em);
  decoratedWith = metadata;
  return quickToFork(Object.assign(orm, { em, getMetadata: () => metadata }));
}

/**
 * HOT: each fork of the entity manager, thus each request, sets and resets an option of the configuration. Each time,
 * MikroORM copies settings into the environment of the process and the logger, which takes a tenth of the CPU of
 * reading a wallet. The settings do not change after the ORM is open.
 */
function quickToFork(orm: Orm): Orm {
  return Object.assign(orm, { config: Object.assign(orm.config, { sync: () => undefined }) });
}
