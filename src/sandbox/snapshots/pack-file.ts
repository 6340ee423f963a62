import { promisify } from 'node:util';
import { constants, gunzip, gzip } from 'node:zlib';
import { InvalidSnapshotError } from './snapshot-file.ts';

/** Larger than any snapshot that is stored. */
const MAX_BYTES = 300 * 1024 * 1024;

/** A file for a JSON body: gzip in base64. */
export async function packFile(content: Buffer): Promise<string> {
  const packed = await promisify(gzip)(content, { level: constants.Z_BEST_SPEED });
  return packed.toString('base64');
}

/** Throws InvalidSnapshotError. */
export async function unpackFile(text: string): Promise<Buffer> {
  try {
    return await promisify(gunzip)(Buffer.from(text, 'base64'), { maxOutputLength: MAX_BYTES });
  } catch (error) {
    const reason = (error as Error).message;
    throw new InvalidSnapshotError(`expected a snapshot, compressed with gzip, in base64: ${reason}`);
  }
}
