import { decimalText } from '../../../engine/assets/decimal.ts';
import {
  base58ToBytes,
  bytesToBase58,
  bytesToBase64,
  concatBytes,
  littleEndian,
  utf8ToBytes,
} from '../../../engine/crypto/encoding.ts';
import type { ConditionInput } from '../../../engine/policy/condition-source.ts';
import { associatedTokenAddress, TOKEN_PROGRAM } from '../../../engine/signing/solana/associated-token.ts';
import {
  encodeSolanaInstructions,
  encodeSolanaTransfer,
  type Instruction,
} from '../../../engine/signing/solana/encode-transfer.ts';
import {
  boundaryNumbers,
  distinct,
  type Effect,
  type LintSubject,
  MAX_RECEIVERS,
  namedValues,
  rpc,
  type TriedRequest,
  transferRequest,
} from './lint-requests.ts';

const MAINNET = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const SYSTEM_PROGRAM = '11111111111111111111111111111111';
const LAMPORTS_DECIMALS = 9;
const MAX_U64 = 2n ** 64n;
const MAX_MINTS = 2;
const TOKEN_DECIMALS = 6;

/** Returns the address of an example account. Any 32 bytes are an address. */
const account = (byte: number): string => bytesToBase58(new Uint8Array(32).fill(byte));
const [SENDER, STRANGER, SOME_MINT] = [account(1), account(2), account(3)];

const instructionNames = ['solana_system_program_instruction', 'solana_token_program_instruction'] as const;

/**
 * Yields payments and token transfers with the values that conditions name, and other instructions that move the same
 * amounts.
 */
export function* solanaEffects({ conditions, sender = SENDER }: LintSubject): Generator<Effect> {
  const named = (source: string, member: string): string[] =>
    namedValues(conditions, (each) => each.field_source === source && each.field.endsWith(`.${member}`));
  const [system, token] = instructionNames;
  const transfers = namedValues(conditions, ({ field }) => field === 'destination.address').filter(isAddress);
  for (const to of distinct([STRANGER, ...named(system, 'to'), ...transfers], MAX_RECEIVERS)) {
    for (const lamports of boundaryNumbers(named(system, 'lamports'), MAX_U64)) {
      yield paymentEffect(sender, to, lamports);
    }
  }
  const destinations = distinct([undefined, ...named(token, 'destination')], MAX_RECEIVERS);
  for (const mint of distinct([SOME_MINT, ...named(token, 'mint')], MAX_MINTS)) {
    for (const destination of destinations) {
      for (const amount of boundaryNumbers(named(token, 'amount'), MAX_U64)) {
        yield* tokenEffects(sender, { mint, destination, amount });
      }
    }
  }
}

function isAddress(text: string): boolean {
  try {
    return base58ToBytes(text).length === 32;
  } catch {
    return false;
  }
}

function requestsOf(
  from: string,
  instruction: Instruction,
  more: Pick<TriedRequest, 'marks' | 'token'> = {},
): readonly TriedRequest[] {
  return transactionRequests(encodeSolanaInstructions(from, [instruction]), more);
}

function transactionRequests(
  wire: Uint8Array,
  more: Pick<TriedRequest, 'marks' | 'token'> = {},
): readonly TriedRequest[] {
  const params = { transaction: bytesToBase64(wire), encoding: 'base64' };
  return [
    rpc('signTransaction', { params }, more),
    rpc('signAndSendTransaction', { caip2: MAINNET, params }, more),
  ];
}

function paymentEffect(from: string, to: string, lamports: bigint): Effect {
  const calls = transactionRequests(encodeSolanaTransfer({ from, to, mint: undefined, rawAmount: lamports }));
  const amount = decimalText({ digits: lamports, scale: LAMPORTS_DECIMALS });
  const source = { asset: 'sol', amount, chain: 'solana' };
  const transfer = lamports === 0n ? [] : [transferRequest({ source, destination: { address: to } })];
  const siblings = Object.entries(systemSiblings(from, to, lamports)).map(([name, instruction]) =>
    requestsOf(from, instruction, { marks: [nameIs('solana_system_program_instruction', name)] }),
  );
  const token = tokenCalls(from, { mint: SOME_MINT, destination: undefined, amount: 1n });
  return {
    calls: [...calls, ...transfer],
    others: calls.flatMap(({ method: of }, index) => [
      { kind: 'sibling_call' as const, of, requests: siblings.map((each) => each[index]!) },
      { kind: 'token_transfer' as const, of, requests: [token[0]!.requests[index]!] },
    ]),
  };
}

function nameIs(source: (typeof instructionNames)[number], value: string): ConditionInput {
  return { field_source: source, field: 'instructionName', operator: 'eq', value };
}

/**
 * Returns the instructions of the System Program, other than a transfer, by which a wallet can lose lamports. They fund
 * a new account that the receiver owns, send from an account derived from the wallet, withdraw from a nonce account, or
 * hand over the wallet's account or its nonce account. Source: solana-program system_instruction.rs
 */
function systemSiblings(from: string, to: string, lamports: bigint): Readonly<Record<string, Instruction>> {
  const [wallet, other, receiver] = [from, account(4), to].map((address) => ({ address, isWritable: true }));
  const [authority, hashes, rent] = [{ address: from }, { address: BLOCKHASHES }, { address: RENT }];
  const [amount, space, program] = [littleEndian(lamports, 8), littleEndian(0n, 8), base58ToBytes(to)];
  const seed = concatBytes(littleEndian(4n, 8), utf8ToBytes('seed'));
  const of = (
    tag: bigint,
    accounts: readonly (Instruction['accounts'][number] | undefined)[],
    ...data: Uint8Array[]
  ): Instruction => ({
    program: SYSTEM_PROGRAM,
    accounts: accounts.filter((each) => each !== undefined),
    data: concatBytes(littleEndian(tag, 4), ...data),
  });
  return {
    // The new account also has to sign.
    CreateAccount: of(0n, [wallet, other], amount, space, program),
    Assign: of(1n, [wallet], program),
    CreateAccountWithSeed: of(3n, [wallet, other], base58ToBytes(from), seed, amount, space, program),
    WithdrawNonceAccount: of(5n, [other, receiver, hashes, rent, authority], amount),
    AuthorizeNonceAccount: of(7n, [other, authority], program),
    TransferWithSeed: of(11n, [other, authority, receiver], amount, seed, base58ToBytes(SYSTEM_PROGRAM)),
  };
}

const BLOCKHASHES = 'SysvarRecentB1ockHashes11111111111111111111';
const RENT = 'SysvarRent111111111111111111111111111111111';

/**
 * Yields payments with a durable nonce, which stay valid until the nonce is used. Source: Solana docs, durable nonces.
 */
export function* durablePayments({ conditions, sender = SENDER }: LintSubject): Generator<TriedRequest> {
  const named = (member: string) =>
    namedValues(
      conditions,
      (each) => each.field_source === instructionNames[0] && each.field === `Transfer.${member}`,
    );
  const marks = [nameIs('solana_system_program_instruction', 'AdvanceNonceAccount')];
  const advance: Instruction = {
    program: SYSTEM_PROGRAM,
    accounts: [{ address: account(4), isWritable: true }, { address: BLOCKHASHES }, { address: sender }],
    data: littleEndian(4n, 4),
  };
  for (const to of distinct([STRANGER, ...named('to')], MAX_RECEIVERS)) {
    for (const lamports of boundaryNumbers(named('lamports'), MAX_U64)) {
      const transfer: Instruction = {
        program: SYSTEM_PROGRAM,
        accounts: [
          { address: sender, isWritable: true },
          { address: to, isWritable: true },
        ],
        data: concatBytes(littleEndian(2n, 4), littleEndian(lamports, 8)),
      };
      yield* transactionRequests(encodeSolanaInstructions(sender, [advance, transfer]), { marks });
    }
  }
}

interface TokenTerms {
  readonly mint: string;
  /** The address of a token account. Undefined stands for the token account of an owner that no rule names. */
  readonly destination: string | undefined;
  readonly amount: bigint;
}

interface TokenCall {
  readonly name: string;
  readonly requests: readonly TriedRequest[];
}

/** Yields a transfer in both of its forms, and all other instructions that give the tokens away. */
function* tokenEffects(from: string, terms: TokenTerms): Generator<Effect> {
  const all = tokenCalls(from, terms);
  for (const { name, requests: calls } of all.slice(0, 2)) {
    const siblings = all.filter((each) => each.name !== name);
    yield {
      calls,
      others: calls.map(({ method: of }, index) => ({
        kind: 'sibling_call',
        of,
        requests: siblings.map(({ requests }) => requests[index]!),
      })),
    };
  }
}

/**
 * Returns the instructions by which an owner gives tokens away. Transfers come first. Source: spl-token instruction.rs
 */
function tokenCalls(from: string, { mint, destination, amount }: TokenTerms): readonly TokenCall[] {
  const source = { address: associatedTokenAddress(from, mint), isWritable: true };
  const to = { address: destination ?? associatedTokenAddress(STRANGER, mint), isWritable: true };
  const [owner, theMint, delegate] = [{ address: from }, { address: mint }, { address: STRANGER }];
  const units = littleEndian(amount, 8);
  const decimals = Uint8Array.of(TOKEN_DECIMALS);
  const forms = [
    { name: 'TransferChecked', tag: 12, accounts: [source, theMint, to, owner], data: [units, decimals] },
    { name: 'Transfer', tag: 3, accounts: [source, to, owner], data: [units] },
    { name: 'Approve', tag: 4, accounts: [source, delegate, owner], data: [units] },
    {
      name: 'ApproveChecked',
      tag: 13,
      accounts: [source, theMint, delegate, owner],
      data: [units, decimals],
    },
    // For wrapped lamports, this moves the whole content of the account.
    { name: 'CloseAccount', tag: 9, accounts: [source, to, owner], data: [] },
    // Authority type 2 is the account's owner, which changes here.
    {
      name: 'SetAuthority',
      tag: 6,
      accounts: [source, owner],
      data: [Uint8Array.of(2, 1), base58ToBytes(STRANGER)],
    },
  ];
  return forms.map(({ name, tag, accounts, data }) => {
    const instruction = { program: TOKEN_PROGRAM, accounts, data: concatBytes(Uint8Array.of(tag), ...data) };
    const marks = [nameIs('solana_token_program_instruction', name)];
    return { name, requests: requestsOf(from, instruction, { marks, token: mint }) };
  });
}
