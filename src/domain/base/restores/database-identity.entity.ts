import { defineEntity, p } from '@mikro-orm/core';

/** The database that the rows were in when a server last used them. At most one row, with the id `current`. */
export const DatabaseIdentityEntity = defineEntity({
  name: 'DatabaseIdentity',
  tableName: 'database_identity',
  properties: {
    id: p.text().primary(),
    /** PostgreSQL's identifier of the cluster, the database and this table in it. */
    cluster: p.text(),
    /** Goes up with every promotion, and at the end of a recovery to a point in time. */
    timeline: p.bigint('number'),
  },
});
