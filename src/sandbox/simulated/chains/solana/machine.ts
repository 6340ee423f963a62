import { bytesToBase58, bytesToBase64 } from '../../../../engine/crypto/encoding.ts';
import type { Machine } from '../blocks.ts';
import { FEE_ACCOUNT, type Movement, NATIVE } from '../ledger.ts';
import type { Block, PoolEntry } from '../pool.ts';
import { mintOf, type SolanaAccount, SYSTEM_PROGRAM, tokenAccountOf } from './accounts.ts';
import { describeError, type TransactionError } from './failures.ts';
import { movementsIn } from './movements.ts';
import {
  type DecodedSolana,
  decodePlan,
  programOfAllChains,
  type ResolvedSolana,
  resolveSolana,
  type SolanaPlan,
} from './plan.ts';
import { type NewReceipt, storeReceipt, type TokenBalance } from './receipts.ts';
import { type Executor, keepsRent, type Outcome } from './runtime.ts';
import type { SolanaState } from './state.ts';

/** The result of a transaction, or the reason why no block can include it. */
export type SolanaRun =
  | { readonly kind: 'refused'; readonly error: TransactionError }
  | {
      readonly kind: 'ran';
      readonly fee: bigint;
      readonly outcome: Outcome;
      readonly resolved: ResolvedSolana;
      readonly movements: readonly Movement[];
      readonly receipt: Omit<NewReceipt, 'hash' | 'block' | 'wire'>;
    };

const LOADERS = /^(BPFLoader|NativeLoader|LoaderV4)/;

/** Returns the machine that executes Solana transactions as a node would. */
export function makeSolanaMachine(
  caip2: string,
  {
    state,
    executor,
    isBlockhashAlive,
  }: {
    readonly state: SolanaState;
    readonly executor: () => Promise<Executor>;
    readonly isBlockhashAlive: (blockhash: string) => boolean;
  },
): Machine<SolanaPlan> {
  return {
    readiness({ plan }: PoolEntry<SolanaPlan>) {
      // CHOICE: Solana does not replace transactions. So for both sentinels, no leader includes the transaction.
      const isNeverIncluded = plan.sentinel === 'stuck' || plan.sentinel === 'replaced';
      const decoded = decodePlan(plan);
      if (decoded === undefined || !isBlockhashAlive(plan.blockhash)) return 'drop';
      if (isNeverIncluded) return 'waits';
      return 'error' in admitted(decoded, (address) => state.account(address)) ? 'drop' : 'ready';
    },
    async execute({ hash, plan }, block) {
      const run = await executor();
      return () => {
        const isReverted = plan.sentinel === 'reverted';
        const decoded = decodePlan(plan)!;
        const result = runSolana(state, decoded, { executor: run, block, isReverted });
        // The payer has spent its lamports since the check of readiness.
        if (result.kind === 'refused') return undefined;
        const { fee, outcome, movements, receipt, resolved } = result;
        const accounts = resolved.accounts.map(({ address }) => address);
        storeReceipt(
          { store: state.store, caip2 },
          { hash, block, wire: bytesToBase64(decoded.wire), ...receipt },
          accounts,
        );
        const failure = outcome.error === null ? undefined : describeError(outcome.error);
        return { fee, failure, movements };
      };
    },
    replacementOf: () => null,
  };
}

/** Returns the reason why the payer cannot pay the fee, if there is one. Source: svm, account_loader.rs. */
function feeError(payer: SolanaAccount, fee: bigint): TransactionError | undefined {
  if (payer.lamports === 0n) return 'AccountNotFound';
  if (payer.owner !== SYSTEM_PROGRAM || payer.data.length > 0) return 'InvalidAccountForFee';
  if (payer.lamports < fee) return 'InsufficientFundsForFee';
  const rest = { ...payer, lamports: payer.lamports - fee };
  return keepsRent(payer, rest) ? undefined : { InsufficientFundsForRent: { account_index: 0 } };
}

/** Returns the transaction with resolved lookup tables, or the reason why no block can include it. */
function admitted(
  decoded: DecodedSolana,
  account: (address: string) => SolanaAccount,
): ResolvedSolana | { readonly error: TransactionError } {
  const { budget, plan } = decoded;
  const resolved = resolveSolana(decoded, account);
  if ('error' in resolved) return resolved;
  const error = budget.error ?? feeError(account(plan.feePayer), plan.fee);
  return error === undefined ? resolved : { error };
}

/** Returns the reason why a program cannot run, if there is one. The transaction then only pays its fee. */
function programError(
  { instructions }: ResolvedSolana,
  executor: Executor,
  account: (address: string) => SolanaAccount,
): TransactionError | undefined {
  for (const { program } of instructions) {
    if (executor.has(program)) continue;
    const found = account(program);
    if (found.lamports === 0n) return 'ProgramAccountNotFound';
    if (!LOADERS.test(found.owner)) return 'InvalidProgramForExecution';
  }
  return undefined;
}

/**
 * Executes a transaction and stores its changes. A failed transaction still pays the fee. Must be called in a
 * transaction of the store.
 *
 * @param isReverted whether a sentinel or a tester makes the transaction fail.
 */
export function runSolana(
  state: SolanaState,
  decoded: DecodedSolana,
  {
    executor,
    block,
    isReverted = false,
  }: { readonly executor: Executor; readonly block: Block; readonly isReverted?: boolean },
): SolanaRun {
  const known = new Map<string, SolanaAccount>();
  const before = (address: string): SolanaAccount => {
    const account = known.get(address) ?? state.account(address);
    known.set(address, account);
    return account;
  };
  const resolved = admitted(decoded, before);
  if ('error' in resolved) return { kind: 'refused', error: resolved.error };
  const { budget, plan } = decoded;
  const { feePayer, fee } = plan;
  const paid: SolanaAccount = { ...before(feePayer), lamports: before(feePayer).lamports - fee };
  const account = (address: string): SolanaAccount => (address === feePayer ? paid : before(address));
  const unloaded = programError(resolved, executor, before);
  const executed =
    unloaded === undefined
      ? executor.run({
          ...{ wire: decoded.wire, resolved, units: budget.units, account, fee },
          ...{ slot: block.number, seconds: block.seconds },
        })
      : unexecuted(unloaded, executor.limit);
  const outcome = isReverted ? revertedBy(executed) : executed;
  const after = (address: string): SolanaAccount => outcome.changed.get(address) ?? account(address);
  state.write(feePayer, paid);
  state.ledger.credit(FEE_ACCOUNT, NATIVE, fee);
  for (const [address, changed] of outcome.changed) state.write(address, changed);
  const addresses = resolved.accounts.map(({ address }) => address);
  return {
    ...{ kind: 'ran', fee, outcome, resolved },
    movements: outcome.error === null ? movementsIn({ resolved, outcome, account }) : [],
    receipt: {
      ...{ error: outcome.error, fee, units: outcome.units, logs: outcome.logs, loaded: resolved.loaded },
      before: addresses.map((address) => lamportsOf(address, before)),
      after: addresses.map((address) => lamportsOf(address, after)),
      tokensBefore: tokenBalances(addresses, before, before),
      tokensAfter: tokenBalances(addresses, after, after),
      inner: innerOf(outcome, addresses),
      returned: outcome.returned && {
        program: outcome.returned.program,
        data: bytesToBase64(outcome.returned.data),
      },
    },
  };
}

/**
 * Returns the outcome of a transaction that was not executed.
 *
 * @param limit the reason why the executor has no such program. A node would log nothing here, but a tester needs the
 * reason.
 */
function unexecuted(error: TransactionError, limit: string | undefined): Outcome {
  return {
    error,
    logs: limit === undefined ? [] : [limit],
    units: 0n,
    inner: [],
    returned: null,
    changed: new Map(),
  };
}

/** Returns the outcome of a transaction that is made to fail: its last instruction fails. */
function revertedBy(outcome: Outcome): Outcome {
  const index = Math.max(0, outcome.inner.length - 1);
  return { ...outcome, error: { InstructionError: [index, { Custom: 0 }] }, changed: new Map() };
}

function lamportsOf(address: string, at: (address: string) => SolanaAccount): bigint {
  const { lamports } = at(address);
  return lamports > 0n ? lamports : (programOfAllChains(address)?.lamports ?? 0n);
}

/** Returns the token balances of a transaction's accounts. */
export function tokenBalances(
  addresses: readonly string[],
  at: (address: string) => SolanaAccount,
  mintAt: (address: string) => SolanaAccount,
): TokenBalance[] {
  return addresses.flatMap((address, accountIndex) => {
    const account = at(address);
    const token = tokenAccountOf(account);
    if (token === undefined) return [];
    const { mint, owner, amount } = token;
    const decimals = mintOf(mintAt(mint))?.decimals ?? (token.nativeReserve === null ? 0 : 9);
    return [{ accountIndex, mint, owner, program: account.owner, amount, decimals }];
  });
}

function innerOf({ inner }: Outcome, addresses: readonly string[]): NewReceipt['inner'] {
  return inner.flatMap((instructions, index) => {
    if (instructions.length === 0) return [];
    const shown = instructions.map(({ program, accounts, data, height }) => ({
      program: addresses.indexOf(program),
      accounts: accounts.map(({ address }) => addresses.indexOf(address)),
      ...{ data: bytesToBase58(data), height },
    }));
    return [{ index, instructions: shown }];
  });
}
