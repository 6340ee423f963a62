import { base58ToBytes, bytesToBase58 } from '../../../../engine/crypto/encoding.ts';
import { TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from '../../../../engine/signing/solana/associated-token.ts';

// Describes accounts and the layouts of their data. Addresses are base58.

export const SYSTEM_PROGRAM = '11111111111111111111111111111111';
export const NATIVE_LOADER = 'NativeLoader1111111111111111111111111111111';
export const UPGRADEABLE_LOADER = 'BPFLoaderUpgradeab1e11111111111111111111111';
/** The address of the mint of wrapped SOL. */
export const NATIVE_MINT = 'So11111111111111111111111111111111111111112';
/** CHOICE: the mint authority of the tokens that the faucet gives. No one has its key. */
export const FAUCET_ADDRESS = 'Faucet1111111111111111111111111111111111111';

export const TOKEN_ACCOUNT_BYTES = 165;
export const MINT_BYTES = 82;

export interface SolanaAccount {
  readonly lamports: bigint;
  /** The only program that may change the account's data. */
  readonly owner: string;
  readonly executable: boolean;
  readonly data: Uint8Array;
}

export const NO_DATA = new Uint8Array();

/** The account at an address that never received anything. */
export const EMPTY_ACCOUNT: SolanaAccount = {
  lamports: 0n,
  owner: SYSTEM_PROGRAM,
  executable: false,
  data: NO_DATA,
};

/**
 * Returns the rent exemption of an account: (128 bytes of overhead + size) * 3480 lamports per byte and year * 2
 * years.
 */
export function rentExemption(sizeBytes: number): bigint {
  return BigInt(128 + sizeBytes) * 3_480n * 2n;
}

/** The data of a token account. Source: spl-token state.rs. */
export interface TokenAccountData {
  readonly mint: string;
  readonly owner: string;
  readonly amount: bigint;
  readonly delegate: string | null;
  readonly delegatedAmount: bigint;
  readonly state: 'initialized' | 'frozen';
  /** The lamports that do not count as wrapped SOL; null for other tokens. */
  readonly nativeReserve: bigint | null;
  readonly closeAuthority: string | null;
  /** In Token-2022, the bytes after the base layout. */
  readonly extensions: Uint8Array;
}

/** The data of a mint. Source: spl-token state.rs. */
export interface MintData {
  readonly mintAuthority: string | null;
  readonly supply: bigint;
  readonly decimals: number;
  readonly freezeAuthority: string | null;
  readonly extensions: Uint8Array;
}

// Token-2022 pads a mint to the length of a token account. The account type and the extensions follow.
const MINT_TYPE = 1;
const ACCOUNT_TYPE = 2;

export function isTokenProgram(program: string): boolean {
  return program === TOKEN_PROGRAM || program === TOKEN_2022_PROGRAM;
}

/** Returns whether the data has the length of one of the program's token accounts. The account may be uninitialized. */
export function isTokenAccountSize(data: Uint8Array, program: string): boolean {
  if (data.length === TOKEN_ACCOUNT_BYTES) return true;
  const isExtended = program === TOKEN_2022_PROGRAM && data.length > TOKEN_ACCOUNT_BYTES;
  return isExtended && data[TOKEN_ACCOUNT_BYTES] !== MINT_TYPE;
}

export function isMintSize(data: Uint8Array, program: string): boolean {
  if (data.length === MINT_BYTES) return true;
  const isExtended = program === TOKEN_2022_PROGRAM && data.length > TOKEN_ACCOUNT_BYTES;
  return isExtended && data[TOKEN_ACCOUNT_BYTES] !== ACCOUNT_TYPE;
}

/** Decodes a token account. Returns undefined unless the account is an initialized token account. */
export function tokenAccountOf({ owner: program, data }: SolanaAccount): TokenAccountData | undefined {
  if (!isTokenProgram(program) || !isTokenAccountSize(data, program)) return undefined;
  const bytes = bufferOf(data);
  const state = bytes[108];
  if (state !== 1 && state !== 2) return undefined;
  return {
    mint: bytesToBase58(bytes.subarray(0, 32)),
    owner: bytesToBase58(bytes.subarray(32, 64)),
    amount: bytes.readBigUInt64LE(64),
    delegate: readKeyOption(bytes, 72),
    state: state === 2 ? 'frozen' : 'initialized',
    nativeReserve: bytes.readUInt32LE(109) === 1 ? bytes.readBigUInt64LE(113) : null,
    delegatedAmount: bytes.readBigUInt64LE(121),
    closeAuthority: readKeyOption(bytes, 129),
    extensions: bytes.subarray(TOKEN_ACCOUNT_BYTES),
  };
}

/**
 * Encodes a token account.
 *
 * @param before the previous data. As on real nodes, the bytes of a key that was removed stay in the data.
 */
export function tokenAccountBytes(account: TokenAccountData, before?: Uint8Array): Uint8Array {
  const bytes = Buffer.alloc(TOKEN_ACCOUNT_BYTES + account.extensions.length);
  if (before !== undefined) bytes.set(before);
  bytes.set(base58ToBytes(account.mint), 0);
  bytes.set(base58ToBytes(account.owner), 32);
  bytes.writeBigUInt64LE(account.amount, 64);
  writeKeyOption(bytes, 72, account.delegate);
  bytes[108] = account.state === 'frozen' ? 2 : 1;
  if (account.nativeReserve !== null) {
    bytes.writeUInt32LE(1, 109);
    bytes.writeBigUInt64LE(account.nativeReserve, 113);
  }
  bytes.writeBigUInt64LE(account.delegatedAmount, 121);
  writeKeyOption(bytes, 129, account.closeAuthority);
  bytes.set(account.extensions, TOKEN_ACCOUNT_BYTES);
  return bytes;
}

/** Decodes a mint. Returns undefined unless the account is an initialized mint. */
export function mintOf({ owner: program, data }: SolanaAccount): MintData | undefined {
  if (!isTokenProgram(program) || !isMintSize(data, program)) return undefined;
  const bytes = bufferOf(data);
  if (bytes[45] !== 1) return undefined;
  return {
    mintAuthority: readKeyOption(bytes, 0),
    supply: bytes.readBigUInt64LE(36),
    decimals: bytes[44]!,
    freezeAuthority: readKeyOption(bytes, 46),
    extensions: bytes.subarray(MINT_BYTES),
  };
}

/**
 * Encodes a mint.
 *
 * @param before the previous data. As on real nodes, the bytes of a key that was removed stay in the data.
 */
export function mintBytes(mint: MintData, before?: Uint8Array): Uint8Array {
  const bytes = Buffer.alloc(MINT_BYTES + mint.extensions.length);
  if (before !== undefined) bytes.set(before);
  writeKeyOption(bytes, 0, mint.mintAuthority);
  bytes.writeBigUInt64LE(mint.supply, 36);
  bytes[44] = mint.decimals;
  bytes[45] = 1;
  writeKeyOption(bytes, 46, mint.freezeAuthority);
  bytes.set(mint.extensions, MINT_BYTES);
  return bytes;
}

function bufferOf(data: Uint8Array): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.length);
}

function readKeyOption(bytes: Buffer, offset: number): string | null {
  return bytes.readUInt32LE(offset) === 1 ? bytesToBase58(bytes.subarray(offset + 4, offset + 36)) : null;
}

function writeKeyOption(bytes: Buffer, offset: number, key: string | null): void {
  bytes.writeUInt32LE(key === null ? 0 : 1, offset);
  if (key === null) return;
  bytes.set(base58ToBytes(key), offset + 4);
}
