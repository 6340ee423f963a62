import { defineEntity, p } from '@mikro-orm/core';

/** A tile of the Merkle tree of the log (C2SP tlog-tiles), full or the partial one at the end of its level. */
export const AuditTileEntity = defineEntity({
  name: 'AuditTile',
  tableName: 'audit_tiles',
  properties: {
    level: p.integer().primary(),
    tileIndex: p.bigint('number').primary(),
    /** Up to 256 hashes of 32 bytes. */
    hashes: p.blob(),
  },
});
