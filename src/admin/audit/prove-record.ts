import { StartError } from '../../config/start-error.ts';
import { type Checkpoint, openCheckpoint } from '../../engine/crypto/tlog/checkpoint.ts';
import { consistencyProof, inclusionProof } from '../../engine/crypto/tlog/merkle-tree.ts';
import { writeProof } from '../../engine/crypto/tlog/proof.ts';
import { readBundle, subtreesOf, TILE_WIDTH } from '../../engine/crypto/tlog/tiles.ts';
import { files, readFileOf, readTileOf, tilesIn, verifierFor } from './log-folder.ts';

/** A record with the proof that it is in the log. */
interface ProvedRecord {
  readonly index: number;
  /** The record, as it was logged. */
  readonly record: string;
  /** The proof in the format of C2SP tlog-proof. */
  readonly proof: string;
}

interface OpenedLog {
  readonly note: string;
  readonly checkpoint: Checkpoint;
}

/**
 * Proves that records are in an exported log.
 *
 * @param wanted the index of a record, or the id of the request that it is about. A request can have several records.
 * @throws StartError if the log has no such record, or no valid checkpoint.
 */
export async function proveRecords(folder: string, wanted: string): Promise<ProvedRecord[]> {
  const { note, checkpoint } = openLog(folder);
  const { size } = checkpoint;
  const found = /^\d{1,15}$/.test(wanted)
    ? recordsAt(folder, size, Number(wanted))
    : recordsOfRequest(folder, size, wanted);
  if (found.length === 0) throw new StartError(`the log has no record \`${wanted}\``);
  const read = subtreesOf(tilesIn(folder, size));
  return Promise.all(
    found.map(async ({ index, record }) => {
      const hashes = await inclusionProof(read, index, size);
      return { index, record, proof: writeProof({ index, hashes, checkpoint: note }) };
    }),
  );
}

/**
 * Proves that the log continues the log of an earlier checkpoint. The proof consists of the hashes of RFC 6962 section
 * 2.1.2 in base64.
 *
 * @throws StartError if one of the checkpoints is invalid, or the earlier one has more records.
 */
export async function proveConsistency(
  folder: string,
  earlier: string,
): Promise<{ readonly from: number; readonly size: number; readonly hashes: readonly string[] }> {
  const { checkpoint } = openLog(folder);
  const first = openCheckpoint(earlier, verifierFor(folder, undefined));
  if (first === undefined)
    throw new StartError('the earlier checkpoint has no valid signature by the key of the log');
  const { size } = checkpoint;
  if (first.size > size)
    throw new StartError(`the earlier checkpoint has ${first.size} records, the log ${size}`);
  const hashes = await consistencyProof(subtreesOf(tilesIn(folder, size)), first.size, size);
  return { from: first.size, size, hashes: hashes.map((hash) => Buffer.from(hash).toString('base64')) };
}

function openLog(folder: string): OpenedLog {
  const note = readFileOf(folder, files.checkpoint)?.toString('utf8');
  const checkpoint = note === undefined ? undefined : openCheckpoint(note, verifierFor(folder, undefined));
  if (note === undefined || checkpoint === undefined) {
    throw new StartError(`\`${folder}\` has no checkpoint with a valid signature`);
  }
  return { note, checkpoint };
}

interface Found {
  readonly index: number;
  readonly record: string;
}

function recordsAt(folder: string, size: number, index: number): Found[] {
  const entries = readEntriesOf(folder, size, Math.floor(index / TILE_WIDTH));
  const entry = entries[index % TILE_WIDTH];
  return entry === undefined ? [] : [{ index, record: Buffer.from(entry).toString('utf8') }];
}

function recordsOfRequest(folder: string, size: number, id: string): Found[] {
  const found: Found[] = [];
  for (let bundle = 0; bundle * TILE_WIDTH < size; bundle += 1) {
    for (const [at, entry] of readEntriesOf(folder, size, bundle).entries()) {
      const record = Buffer.from(entry).toString('utf8');
      if (!record.includes(id)) continue;
      const { request_id } = JSON.parse(record) as { request_id?: string };
      if (request_id === id) found.push({ index: bundle * TILE_WIDTH + at, record });
    }
  }
  return found;
}

function readEntriesOf(folder: string, size: number, index: number): Uint8Array[] {
  const bundle = readTileOf(folder, size, { level: 'entries', index });
  return (bundle === undefined ? undefined : readBundle(bundle)) ?? [];
}
