import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { connectChains } from '../../src/adapters/chain-rpc/connect.ts';
import { silentLog } from '../../src/adapters/log.ts';
import { watchedAddresses } from '../../src/domain/money/transactions/record-funds.ts';
import { entities, type Tables } from '../../src/domain/tables.ts';
import { checksumAddress } from '../../src/engine/signing/ethereum/signer.ts';
import { inUnitOf, unitsOf } from '../../src/server/unit-of-work.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { openDatabase } from '../../src/storage/open-database.ts';
import { makeNodeChain, type NodeChain, startNodeOf } from '../../test/support/nodes/node-chain.ts';

// `node bench/by-hand/deposits.ts`: what it costs to look for deposits in a block, by the number of wallets. A block
// has 200 transactions and 300 token transfers, as on Ethereum. DATABASE_URL measures PostgreSQL, which must be empty.

const BLOCKS = 64;
const TRANSACTIONS = 200;
const LOGS = 300;
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

const hex = (bytes: number): string => `0x${randomBytes(bytes).toString('hex')}`;

function fill(chain: NodeChain): void {
  for (let number = 1; number <= BLOCKS; number += 1) {
    chain.blocks.set(number, {
      transactions: Array.from({ length: TRANSACTIONS }, () => ({
        ...{ hash: hex(32), from: hex(20), to: hex(20), value: '0x1', input: hex(200), gas: '0x5208' },
        ...{ r: hex(32), s: hex(32), nonce: '0x1', type: '0x2' },
      })),
      logs: Array.from({ length: LOGS }, () => ({
        address: hex(20),
        transactionHash: hex(32),
        topics: [
          TRANSFER,
          `0x${'0'.repeat(24)}${hex(20).slice(2)}`,
          `0x${'0'.repeat(24)}${hex(20).slice(2)}`,
        ],
        data: `0x${'1'.padStart(64, '0')}`,
      })),
    });
  }
}

const url = process.env.DATABASE_URL;
const database = await openDatabase(
  entities,
  url === undefined ? { kind: 'sqlite', file: ':memory:' } : { kind: 'postgres', url, poolSize: 2 },
);
if (url !== undefined) await migrate(database.orm);
const inUnit = inUnitOf(unitsOf(database));
const none = null;

async function addWallets(count: number): Promise<void> {
  for (let added = 0; added < count; added += 1000) {
    const rows = Array.from({ length: Math.min(1000, count - added) }, () => ({
      ...{ id: hex(12), app_id: 'app', chain_type: 'ethereum', address: checksumAddress(hex(20).slice(2)) },
      ...{ public_key: none, display_name: none, external_id: none, owner_id: none, policy_id: none },
      ...{ additional_signers: '[]', entity_type: none, entity_id: none, entity_assignment_id: none },
      ...{ entity_assigned_at_ms: none, custody_provider: none, custody_provider_user_id: none },
      ...{
        custody_chain: none,
        created_at_ms: 1,
        exported_at_ms: none,
        imported_at_ms: none,
        archived_at_ms: none,
      },
    }));
    await inUnit(async (em) => {
      // Parameters of one statement are limited.
      for (let at = 0; at < rows.length; at += 100) {
        await em
          .getKysely<Tables>()
          .insertInto('wallets')
          .values(rows.slice(at, at + 100))
          .execute();
      }
    });
  }
}

async function measure(wallets: number): Promise<void> {
  const caip2 = 'eip155:1';
  const chain = makeNodeChain(caip2);
  const node = await startNodeOf(chain);
  const { transfersAfter } = connectChains([{ caip2, urls: [node.url], confirmations: 1 }], silentLog).find(
    caip2,
  )!;
  const watched = watchedAddresses(inUnit);
  let after = (await transfersAfter!({ after: undefined, limit: 100, watched })).position;
  fill(chain);
  chain.head = BLOCKS;
  const calls = node.calls.length;
  const [startMs, startCpu] = [performance.now(), process.cpuUsage()];
  for (let hasMore = true; hasMore; ) {
    const page = await transfersAfter!({ after, limit: 100, watched });
    ({ position: after, hasMore } = page);
  }
  const { user, system } = process.cpuUsage(startCpu);
  const cpuMs = ((user + system) / 1000 / BLOCKS).toFixed(1);
  const realMs = ((performance.now() - startMs) / BLOCKS).toFixed(1);
  const perBlock = ((node.calls.length - calls) / BLOCKS).toFixed(2);
  const lookUpMs = performance.now();
  for (let round = 0; round < 20; round += 1) {
    await watched.among(Array.from({ length: TRANSACTIONS + LOGS }, () => checksumAddress(hex(20).slice(2))));
  }
  const databaseMs = ((performance.now() - lookUpMs) / 20).toFixed(1);
  console.log(
    `${wallets} wallets: ${perBlock} calls, ${realMs} ms and ${cpuMs} ms of CPU per block (with the node's), ${databaseMs} ms for its recipients in the database`,
  );
  await node[Symbol.asyncDispose]();
}

let present = 0;
for (const wallets of [1_000, 10_000, 100_000]) {
  await addWallets(wallets - present);
  present = wallets;
  await measure(wallets);
}
await database.close();
