import {
  base58ToBytes,
  bytesToBase64,
  concatBytes,
  littleEndian,
} from '../../../../engine/crypto/encoding.ts';
import { ASSOCIATED_TOKEN_PROGRAM } from '../../../../engine/signing/solana/associated-token.ts';
import type { Block } from '../pool.ts';
import { SYSTEM_PROGRAM } from './accounts.ts';
import { tokenBalances } from './machine.ts';
import type { AccountMeta, Instruction } from './plan.ts';
import { storeReceipt } from './receipts.ts';
import type { SolanaState } from './state.ts';

/**
 * A deposit in the form of a transaction of its sender, so that clients find it like any other transaction. It has no
 * valid signature.
 */
interface DepositTransaction {
  readonly sender: string;
  readonly recipient: string;
  readonly amount: bigint;
  /**
   * The deposited token; undefined for lamports. `from` is the token account of a payer; undefined if the sender
   * mints the amount.
   */
  readonly token:
    | {
        readonly mint: string;
        readonly program: string;
        readonly to: string;
        readonly from: string | undefined;
      }
    | undefined;
}

/** Runs `work`, which makes a deposit and returns its hash, and stores a receipt for the deposit. */
export function withReceipt(
  { state, caip2, block }: { readonly state: SolanaState; readonly caip2: string; readonly block: Block },
  deposit: DepositTransaction,
  work: () => string,
): string {
  const instructions = instructionsOf(deposit);
  const keys = keysOf(deposit.sender, instructions);
  const addresses = keys.map(({ address }) => address);
  const held = () => {
    const accounts = new Map(addresses.map((address) => [address, state.account(address)]));
    const account = (address: string) => accounts.get(address) ?? state.account(address);
    return {
      lamports: addresses.map((address) => account(address).lamports),
      tokens: tokenBalances(addresses, account, account),
    };
  };
  const before = held();
  const hash = work();
  const after = held();
  storeReceipt(
    { store: state.store, caip2 },
    {
      ...{ hash, block, wire: bytesToBase64(wireOf(hash, keys, instructions)) },
      ...{ error: null, fee: 0n, units: 0n, logs: [], inner: [], returned: null },
      ...{ before: before.lamports, after: after.lamports },
      ...{ tokensBefore: before.tokens, tokensAfter: after.tokens },
      loaded: { writable: [], readonly: [] },
    },
    addresses,
  );
  return hash;
}

const writable = (address: string): AccountMeta => ({ address, isSigner: false, isWritable: true });
const readOnly = (address: string): AccountMeta => ({ address, isSigner: false, isWritable: false });

function instructionsOf({ sender, recipient, amount, token }: DepositTransaction): Instruction[] {
  const signer: AccountMeta = { address: sender, isSigner: true, isWritable: true };
  const units = littleEndian(amount, 8);
  if (token === undefined) {
    const data = concatBytes(littleEndian(2n, 4), units);
    return [{ program: SYSTEM_PROGRAM, accounts: [signer, writable(recipient)], data }];
  }
  const { mint, program, to, from } = token;
  const created = [signer, writable(to), readOnly(recipient), readOnly(mint)];
  return [
    {
      program: ASSOCIATED_TOKEN_PROGRAM,
      accounts: [...created, readOnly(SYSTEM_PROGRAM), readOnly(program)],
      data: Uint8Array.of(1),
    },
    from === undefined
      ? {
          ...{ program, accounts: [writable(mint), writable(to), signer] },
          data: concatBytes(Uint8Array.of(7), units),
        }
      : {
          ...{ program, accounts: [writable(from), writable(to), signer] },
          data: concatBytes(Uint8Array.of(3), units),
        },
  ];
}

/** Returns the accounts of a message: the payer, then the other writable accounts, then the read-only accounts. */
function keysOf(payer: string, instructions: readonly Instruction[]): AccountMeta[] {
  const metas = instructions.flatMap(({ program, accounts }) => [...accounts, readOnly(program)]);
  const addresses = [...new Set([payer, ...metas.map(({ address }) => address)])];
  const all = addresses.map((address) => ({
    address,
    isSigner: address === payer,
    isWritable: metas.some((meta) => meta.address === address && meta.isWritable),
  }));
  return [...all.filter(({ isWritable }) => isWritable), ...all.filter(({ isWritable }) => !isWritable)];
}

// Format: signatures || header || keys || blockhash || instructions. All counts are below 128.
function wireOf(
  hash: string,
  keys: readonly AccountMeta[],
  instructions: readonly Instruction[],
): Uint8Array {
  const indexOf = (address: string): number => keys.findIndex((key) => key.address === address);
  const readOnlyCount = keys.filter(({ isWritable }) => !isWritable).length;
  const compiled = instructions.flatMap(({ program, accounts, data }) => [
    Uint8Array.of(indexOf(program), accounts.length, ...accounts.map(({ address }) => indexOf(address))),
    Uint8Array.of(data.length),
    data,
  ]);
  return concatBytes(
    Uint8Array.of(1),
    base58ToBytes(hash),
    Uint8Array.of(1, 0, readOnlyCount, keys.length),
    ...keys.map(({ address }) => base58ToBytes(address)),
    new Uint8Array(32),
    Uint8Array.of(instructions.length),
    ...compiled,
  );
}
