import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { verifyLog } from '../../src/admin/audit/verify-log.ts';
import { checkpointText, signedNote, writeVerifierKey } from '../../src/engine/crypto/tlog/checkpoint.ts';
import { leafHash, rootOf } from '../../src/engine/crypto/tlog/merkle-tree.ts';
import {
  appendToTiles,
  subtreesOf,
  TILE_WIDTH,
  tilePath,
  writeBundle,
} from '../../src/engine/crypto/tlog/tiles.ts';
import { reportProgress } from './storage-rounds.ts';

// How fast an exported audit log is verified: records of the length of those of a signature.

/** Records per second of CPU time, by round. */
export interface VerifyMeasured {
  readonly records: number;
  readonly perCpuSecond: number[];
}

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '3' }, records: { type: 'string', default: '200000' } },
});
const records = Number(values.records);
const folder = mkdtempSync(join(tmpdir(), 'custos-bench-audit-'));
try {
  reportProgress(`writing a log of ${records} records`);
  await writeLog();
  const measured: VerifyMeasured = { records, perCpuSecond: [] };
  for (let round = 1; round <= Number(values.rounds); round += 1) {
    reportProgress(`round ${round} of ${values.rounds}`);
    const before = process.cpuUsage();
    const { faults, size } = await verifyLog(folder);
    const { user, system } = process.cpuUsage(before);
    if (faults.length > 0 || size !== records) throw new Error(`the log is wrong: ${faults.join('; ')}`);
    measured.perCpuSecond.push((records * 1e6) / (user + system));
  }
  process.send?.(measured);
} finally {
  rmSync(folder, { recursive: true });
}
process.disconnect?.();

async function writeLog(): Promise<void> {
  const entries = Array.from({ length: records }, (_, at) => Buffer.from(entryOf(at)));
  const tiles = await appendToTiles(async () => Buffer.alloc(0), 0, entries.map(leafHash));
  for (const { level, index, hashes } of tiles) write(tilePath(level, index, hashes.length / 32), hashes);
  for (let at = 0; at < records; at += TILE_WIDTH) {
    const bundle = entries.slice(at, at + TILE_WIDTH);
    write(tilePath('entries', at / TILE_WIDTH, bundle.length), writeBundle(bundle));
  }
  const byPlace = new Map(tiles.map(({ level, index, hashes }) => [`${level}/${index}`, hashes]));
  const root = await rootOf(
    subtreesOf(async (level, index) => byPlace.get(`${level}/${index}`)!),
    records,
  );
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
  const verifier = { name: 'custos.invalid/bench', publicKey: raw };
  const text = checkpointText({ origin: verifier.name, size: records, root });
  write('checkpoint', signedNote(text, verifier, sign(null, Buffer.from(text), privateKey)));
  write('log.vkey', `${writeVerifierKey(verifier)}\n`);
}

function write(name: string, content: string | Uint8Array): void {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

function entryOf(number: number): string {
  const id = String(number).padStart(24, 'w');
  return `{"app_id":"${'a'.repeat(24)}","at_ms":${1_767_225_600_000 + number},"by":{"app_id":"${'a'.repeat(24)}","kind":"app_secret","signers":["${'5'.repeat(64)}"]},"decision":"allow","ids":{"wallet_id":"${id}"},"operation":"walletRpc","request":"${'d'.repeat(43)}=","request_id":"00000000-0000-4000-8000-${String(number).padStart(12, '0')}","status":200,"version":1}`;
}
