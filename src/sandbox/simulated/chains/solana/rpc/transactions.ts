import { base58ToBytes, base64ToBytes, bytesToBase58 } from '../../../../../engine/crypto/encoding.ts';
import { invalid, LIMIT_EXCEEDED, RpcError } from '../../rpc-calls.ts';
import { makeTurns } from '../../turns.ts';
import { parseInstruction, tokenAmount } from '../parse-instruction.ts';
import type { SolanaParts } from '../parts.ts';
import { type DecodedSolana, decodeSolana, type ResolvedSolana, withLoaded } from '../plan.ts';
import { findReceipt, hashesIn, type NewReceipt, type Receipt, type TokenBalance } from '../receipts.ts';
import {
  choiceOf,
  commitmentOf,
  integerOf,
  type Options,
  slotAt,
  UNSUPPORTED_VERSION,
  withIntegers,
} from './params.ts';

// Formats transactions and blocks for the Solana JSON-RPC.

const encodings = ['binary', 'base58', 'base64', 'json', 'jsonParsed'] as const;
type Encoding = (typeof encodings)[number];

/** CHOICE: a response shows at most 1,000 transactions of a block, or lists at most 20,000 signatures. */
const MAX_SHOWN = 1_000;
const MAX_LISTED = 20_000;

interface Shape {
  readonly encoding: Encoding;
  /**
   * The highest transaction version that the client accepts. Undefined if it accepts only legacy transactions; their
   * version is then omitted.
   */
  readonly version: number | undefined;
}

function shapeOf({ encoding, maxSupportedTransactionVersion: version }: Options): Shape {
  return {
    encoding: choiceOf(encoding, encodings, 'json'),
    version: version == null ? undefined : integerOf(version, 'maxSupportedTransactionVersion'),
  };
}

/** Returns the options of a method. Older clients send only an encoding as the second parameter. */
export function withEncoding(value: unknown): unknown {
  return typeof value === 'string' ? { encoding: value } : value;
}

/** Returns the commitment level for a method that does not support `processed`. */
export function confirmedAt(options: Options): 'confirmed' | 'finalized' {
  const level = commitmentOf(options);
  if (level !== 'processed') return level;
  throw invalid('Method does not support commitment below `confirmed`');
}

/** Returns a transaction, or null if it is unknown or has not reached the commitment level. */
export function transactionBy(
  { world: { store }, caip2, ...parts }: SolanaParts,
  hash: string,
  options: Options,
) {
  const level = confirmedAt(options);
  const shape = shapeOf(options);
  const receipt = findReceipt({ store, caip2 }, hash);
  if (receipt === undefined || receipt.block.number > slotAt(parts, level)) return null;
  const { number, seconds } = receipt.block;
  return { slot: number, blockTime: seconds, ...transactionView(receipt, shape) };
}

function transactionView(receipt: Receipt, shape: Shape) {
  const decoded = decodeSolana(base64ToBytes(receipt.wire));
  const { version } = decoded.transaction;
  requireVersion(version, shape);
  const resolved = withLoaded(decoded, receipt.loaded);
  return {
    transaction: contentView(decoded, resolved, receipt.wire, shape.encoding),
    meta: metaView(receipt, resolved, shape.encoding),
    ...(shape.version === undefined ? {} : { version }),
  };
}

function requireVersion(version: 'legacy' | 0 | 1, { version: supported }: Shape): void {
  if (version === 'legacy' || (supported !== undefined && version <= supported)) return;
  throw new RpcError(
    UNSUPPORTED_VERSION,
    `Transaction version (${version}) is not supported by the requesting client. Please try the request again with the following configuration parameter: "maxSupportedTransactionVersion": ${version}`,
  );
}

function contentView(
  decoded: DecodedSolana,
  resolved: ResolvedSolana,
  wire: string,
  encoding: Encoding,
): unknown {
  if (encoding === 'base64') return [wire, encoding];
  if (encoding === 'base58') return [bytesToBase58(decoded.wire), encoding];
  if (encoding === 'binary') return bytesToBase58(decoded.wire);
  const { transaction, keys } = decoded;
  const isParsed = encoding === 'jsonParsed';
  const lookups = transaction.lookups.map(({ table, writableIndexes, readonlyIndexes }) => ({
    accountKey: bytesToBase58(table),
    ...{ writableIndexes: [...writableIndexes], readonlyIndexes: [...readonlyIndexes] },
  }));
  return {
    signatures: transaction.signatures.map(bytesToBase58),
    message: {
      ...(isParsed
        ? { accountKeys: keysView(resolved, keys.length) }
        : {
            header: {
              numRequiredSignatures: transaction.requiredSignatures,
              numReadonlySignedAccounts: transaction.readonlySigned,
              numReadonlyUnsignedAccounts: transaction.readonlyUnsigned,
            },
            accountKeys: keys,
          }),
      recentBlockhash: bytesToBase58(transaction.recentBlockhash),
      instructions: transaction.instructions.map(({ programIndex, accountIndexes, data }, index) =>
        isParsed
          ? parsedInstruction(
              {
                program: resolved.instructions[index]!.program,
                accounts: resolved.instructions[index]!.accounts.map(({ address }) => address),
                data,
              },
              1,
            )
          : {
              ...{ programIdIndex: programIndex, accounts: [...accountIndexes] },
              ...{ data: bytesToBase58(data), stackHeight: 1 },
            },
      ),
      ...(transaction.version === 'legacy' ? {} : { addressTableLookups: lookups }),
    },
  };
}

function keysView({ accounts }: ResolvedSolana, staticKeys: number) {
  return accounts.map(({ address, isSigner, isWritable }, index) => ({
    ...{ pubkey: address, signer: isSigner, writable: isWritable },
    source: index < staticKeys ? 'transaction' : 'lookupTable',
  }));
}

function parsedInstruction(
  { program, accounts, data }: { program: string; accounts: readonly string[]; data: Uint8Array },
  stackHeight: number,
) {
  const parsed = parseInstruction({ program, accounts, data });
  if (parsed === undefined) {
    return { programId: program, accounts, data: bytesToBase58(data), stackHeight };
  }
  return { program: parsed.program, programId: program, parsed: parsed.parsed, stackHeight };
}

function metaView(
  receipt: Omit<NewReceipt, 'hash' | 'block' | 'wire'>,
  { accounts }: Pick<ResolvedSolana, 'accounts'>,
  encoding: Encoding,
) {
  const { error, fee, units, logs, before, after, tokensBefore, tokensAfter, loaded, returned } = receipt;
  const isParsed = encoding === 'jsonParsed';
  return {
    ...{ err: error, status: error === null ? { Ok: null } : { Err: error }, fee },
    ...{ preBalances: before, postBalances: after },
    innerInstructions: innerView(receipt, { accounts }, isParsed),
    logMessages: logs,
    preTokenBalances: tokensBefore.map(tokenBalanceView),
    postTokenBalances: tokensAfter.map(tokenBalanceView),
    rewards: [],
    ...(isParsed ? {} : { loadedAddresses: loaded }),
    ...(returned === null ? {} : { returnData: returnView(returned) }),
    computeUnitsConsumed: units,
  };
}

export function returnView({ program, data }: NonNullable<NewReceipt['returned']>) {
  return { programId: program, data: [data, 'base64'] };
}

export function innerView(
  { inner }: Pick<NewReceipt, 'inner'>,
  { accounts }: Pick<ResolvedSolana, 'accounts'>,
  isParsed: boolean,
) {
  const address = (index: number): string => accounts[index]?.address ?? '';
  return inner.map(({ index, instructions }) => ({
    index,
    instructions: instructions.map(({ program, accounts: indexes, data, height }) =>
      isParsed
        ? parsedInstruction(
            { program: address(program), accounts: indexes.map(address), data: base58ToBytes(data) },
            height,
          )
        : { programIdIndex: program, accounts: indexes, data, stackHeight: height },
    ),
  }));
}

export function tokenBalanceView({ accountIndex, mint, owner, program, amount, decimals }: TokenBalance) {
  return { accountIndex, mint, owner, programId: program, uiTokenAmount: tokenAmount(amount, decimals) };
}

/** Returns a block, or undefined if it has not reached the commitment level. */
export async function blockView(parts: SolanaParts, slot: number, options: Options) {
  const level = confirmedAt(options);
  if (slot > slotAt(parts, level)) return undefined;
  const shape = shapeOf(options);
  const detail = choiceOf(options.transactionDetails, ['full', 'accounts', 'signatures', 'none'], 'full');
  const { blocks, blockhashAt, world, caip2 } = parts;
  const place = { store: world.store, caip2 };
  const hashes = hashesIn(place, slot, MAX_LISTED);
  const transactions: object[] = [];
  if (detail === 'full' || detail === 'accounts') {
    if (hashes.length > MAX_SHOWN) {
      throw new RpcError(
        LIMIT_EXCEEDED,
        `expected a block of at most ${MAX_SHOWN} transactions: ask for its signatures`,
      );
    }
    const turn = makeTurns();
    for (const hash of hashes) {
      const receipt = findReceipt(place, hash)!;
      const view = detail === 'full' ? transactionView(receipt, shape) : accountsView(receipt, shape);
      transactions.push(withIntegers(view) as object);
      await turn();
    }
  }
  const [first = ''] = hashes;
  return {
    previousBlockhash: blockhashAt(Math.max(0, slot - 1)),
    blockhash: blockhashAt(slot),
    parentSlot: Math.max(0, slot - 1),
    ...(detail === 'full' || detail === 'accounts' ? { transactions } : {}),
    ...(detail === 'signatures' ? { signatures: hashes } : {}),
    ...(options.rewards === false ? {} : { rewards: [] }),
    blockTime: findReceipt(place, first)?.block.seconds ?? blocks.secondsOf(slot),
    blockHeight: slot,
  };
}

function accountsView(receipt: Receipt, shape: Shape) {
  const decoded = decodeSolana(base64ToBytes(receipt.wire));
  const { version, signatures } = decoded.transaction;
  requireVersion(version, shape);
  const { error, fee, before, after, tokensBefore, tokensAfter } = receipt;
  return {
    transaction: {
      signatures: signatures.map(bytesToBase58),
      accountKeys: keysView(withLoaded(decoded, receipt.loaded), decoded.keys.length),
    },
    meta: {
      ...{ err: error, status: error === null ? { Ok: null } : { Err: error }, fee },
      ...{ preBalances: before, postBalances: after },
      preTokenBalances: tokensBefore.map(tokenBalanceView),
      postTokenBalances: tokensAfter.map(tokenBalanceView),
    },
    ...(shape.version === undefined ? {} : { version }),
  };
}
