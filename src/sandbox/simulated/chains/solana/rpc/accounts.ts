import { zstdCompressSync } from 'node:zlib';
import {
  base58ToBytes,
  base64ToBytes,
  bytesToBase58,
  bytesToBase64,
  equalBytes,
} from '../../../../../engine/crypto/encoding.ts';
import { TOKEN_PROGRAM } from '../../../../../engine/signing/solana/associated-token.ts';
import { invalid, isRecord, type RpcCaller, RpcError } from '../../rpc-calls.ts';
import { makeTurns } from '../../turns.ts';
import {
  isTokenProgram,
  mintOf,
  type SolanaAccount,
  tokenAccountOf,
  UPGRADEABLE_LOADER,
} from '../accounts.ts';
import { tokenAmount } from '../parse-instruction.ts';
import type { SolanaParts } from '../parts.ts';
import { programOfAllChains } from '../plan.ts';
import {
  addressOf,
  choiceOf,
  INVALID_REQUEST,
  integerOf,
  listOf,
  type Options,
  SCAN_ERROR,
  withIntegers,
} from './params.ts';

// Formats accounts for the Solana JSON-RPC.

const encodings = ['binary', 'base58', 'base64', 'base64+zstd', 'jsonParsed'] as const;
const RENT_EPOCH = 2n ** 64n - 1n;
const MAX_BASE58_BYTES = 128;
const MAX_FILTERS = 4;
const MAX_COMPARED_BYTES = 128;
const SLOTS_PER_EPOCH = 432_000;

/** CHOICE: a response has at most 5,000 accounts, and 10 MB of their data. */
const MAX_ACCOUNTS = 5_000;
export const MAX_BYTES = 10_000_000;
const ACCOUNTS_PER_READ = 100;

/** Returns an account, or the account of a program that every chain has, or undefined if there is none. */
export function accountAt(parts: SolanaParts, address: string): SolanaAccount | undefined {
  const found = parts.state.account(address);
  if (found.lamports > 0n) return found;
  const program = programOfAllChains(address);
  if (program !== undefined) return program;
  const sysvar = sysvarAt(parts, address);
  return sysvar && { lamports: 1_009_200n, owner: SYSVAR_OWNER, executable: false, data: sysvar };
}

const SYSVAR_OWNER = 'Sysvar1111111111111111111111111111111111111';

function sysvarAt({ blocks }: SolanaParts, address: string): Uint8Array | undefined {
  if (address === 'SysvarC1ock11111111111111111111111111111111') {
    const { number, seconds } = blocks.head();
    const epoch = BigInt(Math.floor(number / SLOTS_PER_EPOCH));
    const data = Buffer.alloc(40);
    for (const [index, value] of [
      BigInt(number),
      BigInt(seconds),
      epoch,
      epoch + 1n,
      BigInt(seconds),
    ].entries()) {
      data.writeBigInt64LE(value, 8 * index);
    }
    return data;
  }
  if (address !== 'SysvarRent111111111111111111111111111111111') return undefined;
  const data = Buffer.alloc(17);
  data.writeBigUInt64LE(3_480n, 0);
  data.writeDoubleLE(2, 8);
  data[16] = 50;
  return data;
}

/** The format in which a client requests the data of accounts. */
export interface Shape {
  readonly encoding: (typeof encodings)[number];
  readonly slice: { readonly offset: number; readonly length: number } | undefined;
}

export function shapeOf({ encoding, dataSlice }: Options, byDefault: Shape['encoding'] = 'binary'): Shape {
  const slice =
    dataSlice === undefined || dataSlice === null
      ? undefined
      : isRecord(dataSlice)
        ? { offset: integerOf(dataSlice.offset, 'offset'), length: integerOf(dataSlice.length, 'length') }
        : undefined;
  return { encoding: choiceOf(encoding, encodings, byDefault), slice };
}

export function accountView(parts: SolanaParts, account: SolanaAccount, shape: Shape) {
  requireEncodable(account, shape);
  return notifiedView(parts, account, shape);
}

/** Formats an account for a notification. Data that is too long for base58 is replaced by a message. */
export function notifiedView(parts: SolanaParts, account: SolanaAccount, shape: Shape) {
  const { lamports, owner, executable, data } = account;
  const shown = dataView(parts, account, shape);
  return { data: shown, executable, lamports, owner, rentEpoch: RENT_EPOCH, space: data.length };
}

function dataView(parts: SolanaParts, account: SolanaAccount, { encoding, slice }: Shape): unknown {
  if (encoding === 'jsonParsed') {
    const parsed = parsedView(parts, account);
    if (parsed !== undefined) return parsed;
  }
  const data = slicedData(account, slice);
  if (encoding === 'base64' || encoding === 'jsonParsed') return [bytesToBase64(data), 'base64'];
  if (encoding === 'base64+zstd') return [bytesToBase64(zstdCompressSync(data)), encoding];
  const text =
    data.length > MAX_BASE58_BYTES ? 'error: data too large for bs58 encoding' : bytesToBase58(data);
  return encoding === 'base58' ? [text, encoding] : text;
}

function slicedData({ data }: SolanaAccount, slice: Shape['slice']): Uint8Array {
  return slice === undefined ? data : data.subarray(slice.offset, slice.offset + slice.length);
}

function requireEncodable(account: SolanaAccount, { encoding, slice }: Shape): void {
  const isBase58 = encoding === 'base58' || encoding === 'binary';
  if (!isBase58 || slicedData(account, slice).length <= MAX_BASE58_BYTES) return;
  const message = `Encoded binary (base 58) data should be less than ${MAX_BASE58_BYTES} bytes, please use Base64 encoding.`;
  throw new RpcError(INVALID_REQUEST, message);
}

/** Parses an account's data. Returns undefined for data that nodes do not parse either. */
function parsedView({ state }: SolanaParts, account: SolanaAccount): object | undefined {
  const { owner, data } = account;
  const view = (program: string, type: string, info: object): object => ({
    ...{ program, parsed: { type, info }, space: data.length },
  });
  if (owner === UPGRADEABLE_LOADER && account.executable && data.length === 36) {
    const programData = bytesToBase58(data.subarray(4));
    return view('bpf-upgradeable-loader', 'program', { programData });
  }
  if (!isTokenProgram(owner)) return undefined;
  const program = owner === TOKEN_PROGRAM ? 'spl-token' : 'spl-token-2022';
  const mint = mintOf(account);
  if (mint !== undefined) {
    if (mint.extensions.length > 0) return undefined;
    const { mintAuthority, supply, decimals, freezeAuthority } = mint;
    return view(program, 'mint', {
      ...{ mintAuthority, supply: String(supply), decimals, isInitialized: true, freezeAuthority },
    });
  }
  const token = tokenAccountOf(account);
  const decimals =
    token && (mintOf(state.account(token.mint))?.decimals ?? (token.nativeReserve === null ? undefined : 9));
  if (token === undefined || decimals === undefined) return undefined;
  const extensions = extensionsOf(token.extensions);
  if (extensions === undefined) return undefined;
  return view(program, 'account', {
    ...{ isNative: token.nativeReserve !== null, mint: token.mint, owner: token.owner, state: token.state },
    tokenAmount: tokenAmount(token.amount, decimals),
    ...(token.delegate === null
      ? {}
      : { delegate: token.delegate, delegatedAmount: tokenAmount(token.delegatedAmount, decimals) }),
    ...(token.nativeReserve === null
      ? {}
      : { rentExemptReserve: tokenAmount(token.nativeReserve, decimals) }),
    ...(token.closeAuthority === null ? {} : { closeAuthority: token.closeAuthority }),
    ...extensions,
  });
}

// The account type, then the extension for an immutable owner, which has no content. Other extensions are not parsed.
const IMMUTABLE_OWNER = Uint8Array.of(2, 7, 0, 0, 0);

function extensionsOf(bytes: Uint8Array): object | undefined {
  if (bytes.length === 0) return {};
  return equalBytes(bytes, IMMUTABLE_OWNER) ? { extensions: [{ extension: 'immutableOwner' }] } : undefined;
}

type Filter = (account: SolanaAccount) => boolean;

/** Reads the filters of `getProgramAccounts`. */
function filtersOf(value: unknown): readonly Filter[] {
  if (value === undefined || value === null) return [];
  const list = listOf(value, Number.POSITIVE_INFINITY);
  if (list.length > MAX_FILTERS) throw invalid(`Too many filters provided; max ${MAX_FILTERS}`);
  return list.map((filter): Filter => {
    if (filter === 'tokenAccountState') return (account) => tokenAccountOf(account) !== undefined;
    if (isRecord(filter) && filter.dataSize !== undefined) {
      const size = integerOf(filter.dataSize, 'dataSize');
      return ({ data }) => data.length === size;
    }
    if (!isRecord(filter) || !isRecord(filter.memcmp)) throw invalid('Invalid params: expected a filter.');
    const { offset, bytes, encoding } = filter.memcmp;
    const at = integerOf(offset, 'offset');
    const compared = comparedBytes(bytes, choiceOf(encoding, ['base58', 'base64'], 'base58'));
    return ({ data }) =>
      at + compared.length <= data.length && equalBytes(data.subarray(at, at + compared.length), compared);
  });
}

function comparedBytes(bytes: unknown, encoding: 'base58' | 'base64'): Uint8Array {
  const tooLong = invalid('Invalid param: DataTooLarge');
  if (Array.isArray(bytes)) {
    if (bytes.length > MAX_COMPARED_BYTES) throw tooLong;
    return Uint8Array.from(bytes, (byte) => integerOf(byte, 'bytes'));
  }
  if (typeof bytes !== 'string') throw invalid('Invalid params: expected `bytes` as a string.');
  if (bytes.length > 2 * MAX_COMPARED_BYTES) throw tooLong;
  let decoded: Uint8Array;
  try {
    decoded = encoding === 'base58' ? base58ToBytes(bytes) : base64ToBytes(bytes);
  } catch {
    throw invalid(`Invalid param: expected \`bytes\` as ${encoding}`);
  }
  if (decoded.length > MAX_COMPARED_BYTES) throw tooLong;
  return decoded;
}

/** Returns the accounts of a program that match the filters, in the order of their addresses. */
export async function programAccounts(
  parts: SolanaParts,
  program: unknown,
  { options, caller }: { readonly options: Options; readonly caller: RpcCaller },
) {
  const owner = addressOf(program);
  const filters = filtersOf(options.filters);
  const shape = shapeOf(options);
  const found: object[] = [];
  let bytes = 0;
  let after = '';
  const turn = makeTurns();
  for (;;) {
    // Filters may exclude almost all accounts, so a limit on results would not limit the scan.
    if (caller.signal.aborted || caller.isLate()) {
      throw new RpcError(SCAN_ERROR, 'accounts scan aborted: the time of the call is over');
    }
    const addresses = parts.state.ownedBy(owner, { after, limit: ACCOUNTS_PER_READ });
    for (const pubkey of addresses) {
      const account = parts.state.account(pubkey);
      if (account.owner === owner && filters.every((filter) => filter(account))) {
        found.push(withIntegers({ pubkey, account: accountView(parts, account, shape) }) as object);
        bytes += shape.slice?.length ?? account.data.length;
      }
      if (found.length > MAX_ACCOUNTS || bytes > MAX_BYTES) {
        throw new RpcError(
          SCAN_ERROR,
          'accounts scan aborted: The accumulated scan results exceeded the limit: add filters or a dataSlice',
        );
      }
      await turn();
    }
    if (addresses.length < ACCOUNTS_PER_READ) return found;
    after = addresses.at(-1)!;
  }
}

/** Returns the token accounts of an owner for one mint, or for one token program. */
export async function tokenAccountsByOwner(
  parts: SolanaParts,
  { owner, filter, options }: { readonly owner: string; readonly filter: unknown; readonly options: Options },
) {
  const { state } = parts;
  if (!isRecord(filter) || (filter.mint === undefined && filter.programId === undefined)) {
    throw invalid('Invalid params: expected `mint` or `programId`.');
  }
  const program = filter.programId === undefined ? undefined : addressOf(filter.programId);
  if (program !== undefined && !isTokenProgram(program)) {
    throw invalid('Invalid param: unrecognized Token program id');
  }
  const mint = filter.mint === undefined ? undefined : addressOf(filter.mint);
  if (mint !== undefined && mintOf(state.account(mint)) === undefined) {
    throw invalid(
      `Invalid param: ${state.account(mint).lamports === 0n ? 'could not find mint' : 'not a Token mint'}`,
    );
  }
  const shape = shapeOf(options);
  const turn = makeTurns();
  const found: object[] = [];
  const addresses = state.tokenAddressesOf(owner, mint, MAX_ACCOUNTS + 1);
  if (addresses.length > MAX_ACCOUNTS) {
    throw new RpcError(SCAN_ERROR, 'accounts scan aborted: The accumulated scan results exceeded the limit');
  }
  for (const pubkey of addresses) {
    const account = state.account(pubkey);
    const isWanted = account.lamports > 0n && (program === undefined || account.owner === program);
    if (isWanted) found.push(withIntegers({ pubkey, account: accountView(parts, account, shape) }) as object);
    await turn();
  }
  return found;
}

export function tokenAccountBalance({ state }: SolanaParts, address: string) {
  const account = state.account(address);
  if (account.lamports === 0n) throw invalid('Invalid param: could not find account');
  const token = tokenAccountOf(account);
  if (token === undefined) throw invalid('Invalid param: not a Token account');
  return tokenAmount(token.amount, mintOf(state.account(token.mint))?.decimals ?? 9);
}

export function tokenSupply({ state }: SolanaParts, address: string) {
  const account = state.account(address);
  if (account.lamports === 0n) throw invalid('Invalid param: could not find account');
  const mint = mintOf(account);
  if (mint === undefined) throw invalid('Invalid param: not a Token mint');
  return tokenAmount(mint.supply, mint.decimals);
}

/** Returns the 20 largest accounts of a token. */
export function largestTokenAccounts({ state, caip2 }: SolanaParts, mint: string) {
  const decimals = mintOf(state.account(mint))?.decimals;
  if (decimals === undefined) throw invalid('Invalid param: not a Token mint');
  return state.store
    .all<{ address: string; amount: string }>(
      `select address, amount from token_accounts where caip2 = ? and mint = ?
       order by length(amount) desc, amount desc, address limit 20`,
      ...[caip2, mint],
    )
    .map(({ address, amount }) => ({ address, ...tokenAmount(BigInt(amount), decimals) }));
}
