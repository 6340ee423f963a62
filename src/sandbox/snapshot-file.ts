import { promisify } from 'node:util';
import { constants, crc32, gunzip, gzip } from 'node:zlib';
import type { SnapshotFacts } from './control-plane.ts';
import type { SandboxSnapshot } from './generated/schemas.ts';

/*
 * A snapshot file consists of:
 *
 * - `custos snapshot\n`
 * - the length and the CRC-32 of the header (4 bytes each, big-endian)
 * - the header as JSON
 * - the image of the database
 * - the image of the simulated chains, unless none was used
 * - the recorded requests, if any
 */

const MAGIC = Buffer.from('custos snapshot\n');
const FIXED_BYTES = MAGIC.length + 8;
const MAX_HEADER_BYTES = 60_000;
const FORMAT = 1;

/** The maximum number of bytes up to the end of the header. */
export const HEADER_BYTES = FIXED_BYTES + MAX_HEADER_BYTES;

/** The position of a sandbox in one of its random streams. */
interface StreamPosition {
  readonly seed: string;
  readonly drawn: number;
}

/** The part of a sandbox's state that is not in its databases. */
export interface SnapshotState {
  readonly appId: string;
  readonly appSecret: string;
  readonly masterKeyHex: string;
  readonly clock: { readonly frozenAtMs: number | null; readonly offsetMs: number };
  /** The positions in the seeded streams of random bytes. Null for a sandbox without a seed. */
  readonly entropy: Readonly<
    Record<'main' | 'requests' | 'faults', StreamPosition> & {
      /** Undefined in snapshots of earlier versions. */
      phrases?: StreamPosition | undefined;
    }
  > | null;
  readonly isFiatUp: boolean;
  readonly areCardsUp: boolean;
}

/** The number of schema migrations of each database. */
export interface SchemaVersions {
  readonly database: number;
  readonly chains: number;
}

/** The whole state of a sandbox at one moment, including its keys. */
export interface Snapshot {
  /** The version of the program that saved it. */
  readonly version: string;
  readonly schema: SchemaVersions;
  /** The system time in Unix ms. */
  readonly savedAtMs: number;
  /** The time of the sandbox's clock in Unix ms. */
  readonly nowMs: number;
  readonly state: SnapshotState;
  readonly database: Buffer;
  /** The content of the simulated chains. Undefined if none was used. */
  readonly chains: Buffer | undefined;
  /** Recorded requests, as `RequestLog.pack` returns them. */
  readonly requests?: Buffer | undefined;
  /** The prefix of the header names in the recorded requests. */
  readonly prefix?: string | undefined;
}

type Part = { readonly bytes: number; readonly crc32: number } | null;

type Header = Omit<Snapshot, 'database' | 'chains' | 'requests'> & {
  readonly format: number;
  readonly database: Part;
  readonly chains: Part;
  readonly requests?: Part;
};

/** Thrown when bytes are not a complete snapshot. The message says why. */
export class InvalidSnapshotError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InvalidSnapshotError';
  }
}

/** Returns the content of a snapshot file, in parts. */
export function encodeSnapshot({ database, chains, requests, ...snapshot }: Snapshot): Buffer[] {
  const header = {
    format: FORMAT,
    ...snapshot,
    database: partOf(database),
    chains: partOf(chains),
    ...(requests === undefined ? {} : { requests: partOf(requests) }),
  } satisfies Header;
  const text = Buffer.from(JSON.stringify(header));
  const fixed = Buffer.alloc(FIXED_BYTES);
  MAGIC.copy(fixed);
  fixed.writeUInt32BE(text.length, MAGIC.length);
  fixed.writeUInt32BE(crc32(text), MAGIC.length + 4);
  return [fixed, text, ...[database, chains, requests].filter((part) => part !== undefined)];
}

/**
 * Reads a snapshot file.
 *
 * @throws InvalidSnapshotError
 */
export function decodeSnapshot(content: Buffer): Snapshot {
  const { header, end } = readHeader(content);
  const parts = [header.database, header.chains, header.requests ?? null];
  const bytes = parts.reduce((sum, part) => sum + (part?.bytes ?? 0), end);
  if (content.length !== bytes) {
    throw new InvalidSnapshotError(`the snapshot is torn: expected ${bytes} bytes, got ${content.length}`);
  }
  let position = end;
  const [database, chains, requests] = parts.map((part) => {
    if (part === null) return undefined;
    position += part.bytes;
    return requirePart(content.subarray(position - part.bytes, position), part);
  });
  const { format: _, ...snapshot } = header;
  return { ...snapshot, database: database!, chains, requests };
}

/**
 * Reads the header of a snapshot file from its first `HEADER_BYTES`.
 *
 * @throws InvalidSnapshotError
 */
export function readSnapshotHeader(
  start: Buffer,
): Pick<Snapshot, 'version' | 'savedAtMs' | 'nowMs' | 'prefix'> {
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
  return { header: requireHeader(parsed(text)), end };
}

function parsed(text: Buffer): unknown {
  try {
    return JSON.parse(text.toString('utf8'));
  } catch {
    throw new InvalidSnapshotError('expected the header of a snapshot as JSON');
  }
}

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string' && value !== '' && value.length <= 1_000;
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isBoolean: Check = (value) => typeof value === 'boolean';
/** Accepts a time to which the clock can be set, up to the end of the year 9999. */
const isTime: Check = (value) => isCount(value) && (value as number) <= MAX_TIME_MS;
const isOffset: Check = (value) => Number.isSafeInteger(value) && Math.abs(value as number) <= MAX_TIME_MS;
const isCrc: Check = (value) => isCount(value) && (value as number) <= 0xffff_ffff;
/** Accepts a position in a random stream. A stream's counter has 32 bits, and each of its values yields 64 bytes. */
const isDrawn: Check = (value) => isCount(value) && (value as number) < 64 * 2 ** 32;
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);

const MAX_TIME_MS = 253_402_300_799_999;

/** The check of each value in a header, by path. Other values are ignored, so that later versions can add some. */
const headerChecks: readonly (readonly [path: string, check: Check])[] = [
  ...(['version', 'state.appId', 'state.appSecret'] as const).map((path) => [path, isText] as const),
  ['schema.database', isCount],
  ['schema.chains', isCount],
  ['savedAtMs', isTime],
  ['nowMs', isTime],
  ['state.masterKeyHex', (value) => typeof value === 'string' && /^[0-9a-f]{64}$/i.test(value)],
  ['state.clock.frozenAtMs', orNull(isTime)],
  ['state.clock.offsetMs', isOffset],
  ['state.isFiatUp', isBoolean],
  ['state.areCardsUp', isBoolean],
  ['database.bytes', isCount],
  ['database.crc32', isCrc],
];

const streamNames = ['main', 'requests', 'faults', 'phrases'] as const;

/**
 * Returns the header if a sandbox could have written each value in it. Checksums are not enough, because they do not
 * prove who wrote the header.
 *
 * @throws InvalidSnapshotError, which names the value but does not contain it, because it may be secret.
 */
function requireHeader(header: unknown): Header {
  const require = (path: string, check: Check): void => {
    if (!check(valueAt(header, path))) {
      throw new InvalidSnapshotError(`expected a valid \`${path}\` in the header of the snapshot`);
    }
  };
  const format = valueAt(header, 'format');
  if (format !== FORMAT) {
    const version = String(valueAt(header, 'version')).slice(0, 40);
    const expected = `expected format ${FORMAT}, got ${String(format).slice(0, 40)}`;
    throw new InvalidSnapshotError(`the snapshot was saved by version ${version} of Custos: ${expected}`);
  }
  for (const [path, check] of headerChecks) require(path, check);
  if (valueAt(header, 'chains') !== null) {
    require('chains.bytes', isCount);
    require('chains.crc32', isCrc);
  }
  if (valueAt(header, 'requests') !== undefined) {
    require('requests.bytes', isCount);
    require('requests.crc32', isCrc);
    require('prefix', (value) => typeof value === 'string' && /^[a-z][a-z0-9]{0,30}$/.test(value));
  }
  if (valueAt(header, 'state.entropy') !== null) {
    for (const name of streamNames) {
      if (name === 'phrases' && valueAt(header, 'state.entropy.phrases') === undefined) continue;
      require(`state.entropy.${name}.seed`, (value) => typeof value === 'string' && value.length <= 10_000);
      require(`state.entropy.${name}.drawn`, isDrawn);
    }
  }
  return header as Header;
}

function valueAt(header: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (value, name) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, name)
          ? (value as Record<string, unknown>)[name]
          : undefined,
      header,
    );
}

function partOf(image: Buffer): NonNullable<Part>;
function partOf(image: Buffer | undefined): Part;
function partOf(image: Buffer | undefined): Part {
  return image === undefined ? null : { bytes: image.length, crc32: crc32(image) };
}

function requirePart(image: Buffer, part: NonNullable<Part>): Buffer {
  if (crc32(image) !== part.crc32) {
    throw new InvalidSnapshotError('the snapshot is torn: a part of it is not as it was written');
  }
  return image;
}

/** The maximum size of an unpacked file, larger than any stored snapshot. */
const MAX_BYTES = 300 * 1024 * 1024;

/** Compresses a file for a JSON body: gzip in base64. */
export async function packFile(content: Buffer): Promise<string> {
  const packed = await promisify(gzip)(content, { level: constants.Z_BEST_SPEED });
  return packed.toString('base64');
}

/**
 * Decompresses the result of `packFile`.
 *
 * @throws InvalidSnapshotError
 */
export async function unpackFile(text: string): Promise<Buffer> {
  try {
    return await promisify(gunzip)(Buffer.from(text, 'base64'), { maxOutputLength: MAX_BYTES });
  } catch (error) {
    const reason = (error as Error).message;
    throw new InvalidSnapshotError(`expected a snapshot, compressed with gzip, in base64: ${reason}`);
  }
}

/** Returns a snapshot in the form of the control plane. */
export function snapshotView({ name, bytes, savedAtMs, nowMs, version }: SnapshotFacts): SandboxSnapshot {
  return { name, bytes, saved_at_ms: savedAtMs, now_ms: nowMs, version };
}
