import { crc32 } from 'node:zlib';

/*
 * A snapshot file: `custos snapshot\n`, the length and the CRC-32 of the header (4 bytes each, big-endian), the header as
 * JSON, the image of the database, the image of the simulated chains.
 */

const MAGIC = Buffer.from('custos snapshot\n');
const FIXED_BYTES = MAGIC.length + 8;
const MAX_HEADER_BYTES = 60_000;
const FORMAT = 1;

/** As many bytes as the header of a snapshot may have. */
export const HEADER_BYTES = FIXED_BYTES + MAX_HEADER_BYTES;

/** Where in a deterministic stream a sandbox was. */
interface StreamPosition {
  readonly seed: string;
  readonly drawn: number;
}

/** The state of a sandbox outside its databases. */
export interface SnapshotState {
  readonly appId: string;
  readonly appSecret: string;
  readonly masterKeyHex: string;
  readonly clock: { readonly frozenAtMs: number | null; readonly offsetMs: number };
  /** Null for a sandbox without a seed. */
  readonly entropy: Readonly<
    Record<'main' | 'requests' | 'faults', StreamPosition> & {
      /** Undefined in snapshots of earlier versions. */
      phrases?: StreamPosition | undefined;
    }
  > | null;
  readonly isFiatUp: boolean;
  readonly areCardsUp: boolean;
}

/** Steps of the schema of each database. */
export interface SchemaVersions {
  readonly database: number;
  readonly chains: number;
}

/** A sandbox at a moment, with its keys. */
export interface Snapshot {
  /** Of the program that saved it. */
  readonly version: string;
  readonly schema: SchemaVersions;
  /** Unix ms of the machine. */
  readonly savedAtMs: number;
  /** Unix ms of the sandbox's clock. */
  readonly nowMs: number;
  readonly state: SnapshotState;
  readonly database: Buffer;
  /** Undefined if no simulated chain was used. */
  readonly chains: Buffer | undefined;
}

type Part = { readonly bytes: number; readonly crc32: number } | null;

type Header = Omit<Snapshot, 'database' | 'chains'> & {
  readonly format: number;
  readonly database: Part;
  readonly chains: Part;
};

/** Bytes that are not a snapshot, or not a whole one. The message says why. */
export class InvalidSnapshotError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InvalidSnapshotError';
  }
}

/** The bytes of a snapshot file, in parts. */
export function encodeSnapshot({ database, chains, ...snapshot }: Snapshot): Buffer[] {
  const header = {
    format: FORMAT,
    ...snapshot,
    database: partOf(database),
    chains: partOf(chains),
  } satisfies Header;
  const text = Buffer.from(JSON.stringify(header));
  const fixed = Buffer.alloc(FIXED_BYTES);
  MAGIC.copy(fixed);
  fixed.writeUInt32BE(text.length, MAGIC.length);
  fixed.writeUInt32BE(crc32(text), MAGIC.length + 4);
  return [fixed, text, database, ...(chains === undefined ? [] : [chains])];
}

/**
 * Reads a snapshot file.
 *
 * @throws InvalidSnapshotError
 */
export function decodeSnapshot(content: Buffer): Snapshot {
  const { header, end } = readHeader(content);
  const bytes = end + (header.database?.bytes ?? 0) + (header.chains?.bytes ?? 0);
  if (content.length !== bytes) {
    throw new InvalidSnapshotError(`the snapshot is torn: expected ${bytes} bytes, got ${content.length}`);
  }
  const middle = end + (header.database?.bytes ?? 0);
  const database = requirePart(content.subarray(end, middle), header.database);
  const chains = header.chains === null ? undefined : requirePart(content.subarray(middle), header.chains);
  const { format: _, ...snapshot } = header;
  return { ...snapshot, database, chains };
}

/** What a snapshot file says about itself. Needs its first `HEADER_BYTES`. Throws InvalidSnapshotError. */
export function readSnapshotHeader(start: Buffer): Pick<Snapshot, 'version' | 'savedAtMs' | 'nowMs'> {
  return readHeader(start).header;
}

function readHeader(content: Buffer): { header: Header; end: number } {
  if (!content.subarray(0, MAGIC.length).equals(MAGIC)) {
    const isStart = content.length < MAGIC.length && MAGIC.subarray(0, content.length).equals(content);
    throw new InvalidSnapshotError(
      isStart ? `the snapshot is torn: it has ${content.length} bytes` : 'not a snapshot of a sandbox',
    );
  }
  const torn = (): never => {
    throw new InvalidSnapshotError('the snapshot is torn: its header is not as it was written');
  };
  if (content.length < FIXED_BYTES) return torn();
  const end = FIXED_BYTES + content.readUInt32BE(MAGIC.length);
  const text = content.subarray(FIXED_BYTES, end);
  if (end > HEADER_BYTES || content.length < end || crc32(text) !== content.readUInt32BE(MAGIC.length + 4)) {
    return torn();
  }
  const header = JSON.parse(text.toString('utf8')) as Header;
  if (header.format !== FORMAT) {
    const expected = `expected format ${FORMAT}, got ${header.format}`;
    throw new InvalidSnapshotError(
      `the snapshot was saved by version ${header.version} of Custos: ${expected}`,
    );
  }
  return { header, end };
}

function partOf(image: Buffer): NonNullable<Part>;
function partOf(image: Buffer | undefined): Part;
function partOf(image: Buffer | undefined): Part {
  return image === undefined ? null : { bytes: image.length, crc32: crc32(image) };
}

function requirePart(image: Buffer, part: Part): Buffer {
  if (part === null || crc32(image) !== part.crc32) {
    throw new InvalidSnapshotError('the snapshot is torn: a database in it is not as it was written');
  }
  return image;
}
