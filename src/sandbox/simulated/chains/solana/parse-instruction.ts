import {
  type ByteReader,
  createByteReader,
  InvalidBytesError,
} from '../../../../engine/crypto/byte-reader.ts';
import { bytesToBase58, bytesToUtf8 } from '../../../../engine/crypto/encoding.ts';
import {
  ASSOCIATED_TOKEN_PROGRAM,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
} from '../../../../engine/signing/solana/associated-token.ts';
import { SYSTEM_PROGRAM } from './accounts.ts';

// Parses instructions of known programs into the JSON of nodes. Source: agave, transaction-status/src/parse_*.rs.

export interface ParsedInstruction {
  /** The name of the program. */
  readonly program: string;
  readonly parsed: string | { readonly type: string; readonly info: Readonly<Record<string, unknown>> };
}

interface Given {
  readonly program: string;
  /** Addresses in base58. */
  readonly accounts: readonly string[];
  readonly data: Uint8Array;
}

const MEMO_PROGRAMS = [
  'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr',
  'Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo',
];

/** Parses an instruction. Returns undefined for one that nodes do not parse either. */
export function parseInstruction({ program, accounts, data }: Given): ParsedInstruction | undefined {
  if (MEMO_PROGRAMS.includes(program)) {
    const parsed = bytesToUtf8(data);
    return parsed === undefined ? undefined : { program: 'spl-memo', parsed };
  }
  const parse = Object.hasOwn(parsers, program) ? parsers[program] : undefined;
  if (parse === undefined) return undefined;
  try {
    const found = parse.read(accountReader(accounts), createByteReader(data));
    return found && { program: parse.name, parsed: found };
  } catch (error) {
    if (error instanceof InvalidBytesError) return undefined;
    throw error;
  }
}

interface Accounts {
  (index: number): string;
  readonly all: readonly string[];
}

/** Returns a function that reads accounts by index. For a missing account, it throws, which ends the parsing. */
function accountReader(all: readonly string[]): Accounts {
  const at = (index: number): string => {
    const address = all[index];
    if (address === undefined) throw new InvalidBytesError('expected more accounts');
    return address;
  };
  return Object.assign(at, { all });
}

type Read = (
  at: Accounts,
  reader: ByteReader,
) => { readonly type: string; readonly info: Readonly<Record<string, unknown>> } | undefined;

const key = (reader: ByteReader): string => bytesToBase58(reader.bytes(32));

function seedOf(reader: ByteReader): string {
  const length = reader.u64();
  if (length > BigInt(reader.remaining())) throw new InvalidBytesError('expected a seed');
  return bytesToUtf8(reader.bytes(Number(length))) ?? '';
}

const readSystem: Read = (at, reader) => {
  switch (reader.u32()) {
    case 0: {
      const [lamports, space, owner] = [reader.u64(), reader.u64(), key(reader)];
      return { type: 'createAccount', info: { source: at(0), newAccount: at(1), lamports, space, owner } };
    }
    case 1:
      return { type: 'assign', info: { account: at(0), owner: key(reader) } };
    case 2:
      return { type: 'transfer', info: { source: at(0), destination: at(1), lamports: reader.u64() } };
    case 3: {
      const [base, seed] = [key(reader), seedOf(reader)];
      const [lamports, space, owner] = [reader.u64(), reader.u64(), key(reader)];
      const info = { source: at(0), newAccount: at(1), base, seed, lamports, space, owner };
      return { type: 'createAccountWithSeed', info };
    }
    case 8:
      return { type: 'allocate', info: { account: at(0), space: reader.u64() } };
    case 9: {
      const [base, seed, space, owner] = [key(reader), seedOf(reader), reader.u64(), key(reader)];
      return { type: 'allocateWithSeed', info: { account: at(0), base, seed, space, owner } };
    }
    case 10: {
      const [base, seed, owner] = [key(reader), seedOf(reader), key(reader)];
      return { type: 'assignWithSeed', info: { account: at(0), base, seed, owner } };
    }
    case 11: {
      const [lamports, sourceSeed, sourceOwner] = [reader.u64(), seedOf(reader), key(reader)];
      const info = {
        source: at(0),
        sourceBase: at(1),
        destination: at(2),
        lamports,
        sourceSeed,
        sourceOwner,
      };
      return { type: 'transferWithSeed', info };
    }
    default:
      return undefined;
  }
};

const authorityTypes = ['mintTokens', 'freezeAccount', 'accountOwner', 'closeAccount'];

/** Returns the authority of an instruction, or the multisig and its signers. */
function signed(at: Accounts, index: number, name: string): Record<string, unknown> {
  if (at.all.length <= index + 1) return { [name]: at(index) };
  const multisig = `multisig${name[0]!.toUpperCase()}${name.slice(1)}`;
  return { [multisig]: at(index), signers: at.all.slice(index + 1) };
}

const readToken: Read = (at, reader) => {
  const kind = reader.u8();
  const amount = (): string => String(reader.u64());
  const checked = () => ({ tokenAmount: tokenAmount(reader.u64(), reader.u8()) });
  switch (kind) {
    case 0:
    case 20: {
      const [decimals, mintAuthority] = [reader.u8(), key(reader)];
      const freeze = reader.u8() === 1 ? { freezeAuthority: key(reader) } : {};
      const rent = kind === 0 ? { rentSysvar: at(1) } : {};
      return {
        type: kind === 0 ? 'initializeMint' : 'initializeMint2',
        info: { mint: at(0), decimals, mintAuthority, ...rent, ...freeze },
      };
    }
    case 1:
      return {
        type: 'initializeAccount',
        info: { account: at(0), mint: at(1), owner: at(2), rentSysvar: at(3) },
      };
    case 16:
      return {
        type: 'initializeAccount2',
        info: { account: at(0), mint: at(1), owner: key(reader), rentSysvar: at(2) },
      };
    case 18:
      return { type: 'initializeAccount3', info: { account: at(0), mint: at(1), owner: key(reader) } };
    case 3:
      return {
        type: 'transfer',
        info: { source: at(0), destination: at(1), amount: amount(), ...signed(at, 2, 'authority') },
      };
    case 4:
      return {
        type: 'approve',
        info: { source: at(0), delegate: at(1), amount: amount(), ...signed(at, 2, 'owner') },
      };
    case 5:
      return { type: 'revoke', info: { source: at(0), ...signed(at, 1, 'owner') } };
    case 6: {
      const type = reader.u8();
      const newAuthority = reader.u8() === 1 ? key(reader) : null;
      const authorityType = authorityTypes[type];
      if (authorityType === undefined) return undefined;
      const owned = type < 2 ? 'mint' : 'account';
      return {
        type: 'setAuthority',
        info: { [owned]: at(0), authorityType, newAuthority, ...signed(at, 1, 'authority') },
      };
    }
    case 7:
      return {
        type: 'mintTo',
        info: { mint: at(0), account: at(1), amount: amount(), ...signed(at, 2, 'mintAuthority') },
      };
    case 8:
      return {
        type: 'burn',
        info: { account: at(0), mint: at(1), amount: amount(), ...signed(at, 2, 'authority') },
      };
    case 9:
      return {
        type: 'closeAccount',
        info: { account: at(0), destination: at(1), ...signed(at, 2, 'owner') },
      };
    case 10:
    case 11:
      return {
        type: kind === 10 ? 'freezeAccount' : 'thawAccount',
        info: { account: at(0), mint: at(1), ...signed(at, 2, 'freezeAuthority') },
      };
    case 12:
      return {
        type: 'transferChecked',
        info: {
          ...{ source: at(0), mint: at(1), destination: at(2) },
          ...checked(),
          ...signed(at, 3, 'authority'),
        },
      };
    case 13:
      return {
        type: 'approveChecked',
        info: {
          ...{ source: at(0), mint: at(1), delegate: at(2) },
          ...checked(),
          ...signed(at, 3, 'owner'),
        },
      };
    case 14:
      return {
        type: 'mintToChecked',
        info: { mint: at(0), account: at(1), ...checked(), ...signed(at, 2, 'mintAuthority') },
      };
    case 15:
      return {
        type: 'burnChecked',
        info: { account: at(0), mint: at(1), ...checked(), ...signed(at, 2, 'authority') },
      };
    case 17:
      return { type: 'syncNative', info: { account: at(0) } };
    case 21: {
      const extensions: string[] = [];
      while (reader.remaining() >= 2) {
        if (reader.u16() === 7) extensions.push('immutableOwner');
      }
      const types = extensions.length === 0 ? {} : { extensionTypes: extensions };
      return { type: 'getAccountDataSize', info: { mint: at(0), ...types } };
    }
    case 22:
      return { type: 'initializeImmutableOwner', info: { account: at(0) } };
    default:
      return undefined;
  }
};

const readAssociatedToken: Read = (at, reader) => {
  const kind = reader.remaining() === 0 ? 0 : reader.u8();
  if (kind > 1) return undefined;
  return {
    type: kind === 0 ? 'create' : 'createIdempotent',
    info: {
      ...{ source: at(0), account: at(1), wallet: at(2), mint: at(3) },
      ...{ systemProgram: at(4), tokenProgram: at(5) },
    },
  };
};

const parsers: Readonly<Record<string, { readonly name: string; readonly read: Read }>> = {
  [SYSTEM_PROGRAM]: { name: 'system', read: readSystem },
  [TOKEN_PROGRAM]: { name: 'spl-token', read: readToken },
  [TOKEN_2022_PROGRAM]: { name: 'spl-token-2022', read: readToken },
  [ASSOCIATED_TOKEN_PROGRAM]: { name: 'spl-associated-token-account', read: readAssociatedToken },
};

/** Returns an amount of a token in the JSON format of nodes. */
export function tokenAmount(amount: bigint, decimals: number) {
  const text = decimalText(amount, decimals);
  return { uiAmount: Number(text), decimals, amount: String(amount), uiAmountString: text };
}

function decimalText(amount: bigint, decimals: number): string {
  if (decimals === 0) return String(amount);
  const digits = String(amount).padStart(decimals + 1, '0');
  const point = digits.length - decimals;
  let end = digits.length;
  while (end > point && digits[end - 1] === '0') end -= 1;
  const whole = digits.slice(0, point);
  return end === point ? whole : `${whole}.${digits.slice(point, end)}`;
}
