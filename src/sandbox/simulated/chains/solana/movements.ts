import { type Movement, NATIVE } from '../ledger.ts';
import { NATIVE_MINT, type SolanaAccount, SYSTEM_PROGRAM, tokenAccountOf } from './accounts.ts';
import { type ParsedInstruction, parseInstruction } from './parse-instruction.ts';
import type { Instruction, ResolvedSolana } from './plan.ts';
import type { Outcome } from './runtime.ts';

/** Appears as sender of tokens that are minted, and as recipient of tokens that are burned. */
export const NO_ONE = SYSTEM_PROGRAM;

interface Holder {
  readonly owner: string;
  readonly mint: string;
}

interface Given {
  readonly resolved: ResolvedSolana;
  readonly outcome: Pick<Outcome, 'inner' | 'changed'>;
  /** Returns an account as it was before the transaction, but after the fee was paid. */
  account(address: string): SolanaAccount;
}

/**
 * Returns the movements of a transaction, in the order of its instructions and of the instructions that they invoked.
 * At the end come lamports that a program moved without the system program: the remaining differences, from accounts
 * that lost lamports to accounts that gained them.
 */
export function movementsIn({ resolved, outcome, account }: Given): Movement[] {
  const { inner, changed } = outcome;
  const trace = resolved.instructions.flatMap((instruction, index) => [instruction, ...(inner[index] ?? [])]);
  const parsed = trace.map(parsedOf).filter((each) => each !== undefined);
  const holders = holdersIn(parsed, resolved, { account, changed });
  const lamports = new Map<string, bigint>();
  const held = (address: string): bigint => lamports.get(address) ?? account(address).lamports;
  const movements: Movement[] = [];

  function moveNative(sender: string, recipient: string, amount: bigint): void {
    lamports.set(sender, held(sender) - amount);
    lamports.set(recipient, held(recipient) + amount);
    if (amount > 0n) movements.push({ sender, recipient, asset: NATIVE, amount });
  }

  function moveToken(from: Holder | undefined, to: Holder | undefined, amount: bigint): void {
    const asset = (from ?? to)?.mint;
    if (asset === undefined || asset === NATIVE_MINT) return;
    movements.push({ sender: from?.owner ?? NO_ONE, recipient: to?.owner ?? NO_ONE, asset, amount });
  }

  for (const { type, info } of parsed) {
    const text = (name: string): string => String(info[name]);
    if (typeof info.lamports === 'bigint') {
      moveNative(text('source'), text('destination' in info ? 'destination' : 'newAccount'), info.lamports);
    } else if (type === 'closeAccount') {
      moveNative(text('account'), text('destination'), held(text('account')));
    } else {
      const amount = amountOf(info);
      if (amount === undefined || type.startsWith('approve')) continue;
      const [from, to] = [holders.get(text('source')), holders.get(text('destination'))];
      if (type.startsWith('transfer')) {
        moveToken(from, to, amount);
        if (from?.mint === NATIVE_MINT) moveNative(text('source'), text('destination'), amount);
      } else if (type.startsWith('mintTo')) moveToken(undefined, holders.get(text('account')), amount);
      else if (type.startsWith('burn')) moveToken(holders.get(text('account')), undefined, amount);
    }
  }
  settle(held, new Set([...lamports.keys(), ...changed.keys()]), {
    after: (address) => (changed.get(address) ?? account(address)).lamports,
    move: moveNative,
  });
  return movements;
}

/** Adds movements for the differences between recorded and actual lamports. */
function settle(
  held: (address: string) => bigint,
  addresses: ReadonlySet<string>,
  {
    after,
    move,
  }: { after: (address: string) => bigint; move: (from: string, to: string, amount: bigint) => void },
): void {
  const rest = [...addresses].map((address) => ({ address, amount: after(address) - held(address) }));
  const losers = rest.filter(({ amount }) => amount < 0n).map((each) => ({ ...each, amount: -each.amount }));
  for (const { address, amount } of rest.filter((each) => each.amount > 0n)) {
    let missing = amount;
    for (const loser of losers) {
      const part = loser.amount < missing ? loser.amount : missing;
      if (part === 0n) continue;
      loser.amount -= part;
      missing -= part;
      move(loser.address, address, part);
    }
  }
}

type Parsed = Exclude<ParsedInstruction['parsed'], string>;

function parsedOf({ program, accounts, data }: Instruction): Parsed | undefined {
  const found = parseInstruction({ program, accounts: accounts.map(({ address }) => address), data });
  return found === undefined || typeof found.parsed === 'string' ? undefined : found.parsed;
}

function amountOf(info: Readonly<Record<string, unknown>>): bigint | undefined {
  const { amount = (info.tokenAmount as { amount?: unknown } | undefined)?.amount } = info;
  return typeof amount === 'string' ? BigInt(amount) : undefined;
}

/** Returns the owners and mints of the token accounts that exist before, during or after the transaction. */
function holdersIn(
  parsed: readonly Parsed[],
  { accounts }: ResolvedSolana,
  { account, changed }: Pick<Given, 'account'> & Pick<Outcome, 'changed'>,
): ReadonlyMap<string, Holder> {
  const holders = new Map<string, Holder>();
  for (const { address } of accounts) {
    for (const state of [changed.get(address), account(address)]) {
      const token = state && tokenAccountOf(state);
      if (token !== undefined) holders.set(address, token);
    }
  }
  for (const { type, info } of parsed) {
    if (!type.startsWith('initializeAccount')) continue;
    const address = String(info.account);
    if (!holders.has(address)) holders.set(address, { owner: String(info.owner), mint: String(info.mint) });
  }
  return holders;
}
