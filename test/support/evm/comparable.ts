import type { Hex } from 'viem';
import type { Case, Sent } from './cases.ts';
import type { Seen } from './look.ts';
import { type Answer, isTimeout } from './pair.ts';

// The answers of both nodes in a form in which they must be equal. What is left out differs by design, or anvil 1.7.1
// deviates from geth; the reason stands beside it.

const NO_ADDRESS = `0x${'0'.repeat(40)}`;

type Json = Readonly<Record<string, unknown>>;

/** A failed execution: nodes word the reasons of failures differently, except the data of a revert. */
function failureOf(answer: Answer): unknown {
  if ('result' in answer) return answer.result;
  const { code, data, message } = answer.error;
  if (code === 3) return { reverts: data ?? '0x' };
  return { fails: /insufficient funds|OutOfFunds|LackOfFund/i.test(message) ? 'funds' : 'execution' };
}

function receiptOf(answer: Answer): unknown {
  if (!('result' in answer) || answer.result === null) return answer;
  const { blockHash, blobGasPrice, blockTimestamp, logs, ...rest } = answer.result as Json;
  // Hashes of blocks differ. Anvil adds the two others to every receipt, geth only the first and only for blobs.
  void [blockHash, blobGasPrice, blockTimestamp];
  return {
    ...rest,
    logs: (logs as readonly Json[]).map(({ blockHash: _, ...log }) => log),
  };
}

interface Frame {
  readonly type: string;
  readonly from: Hex;
  readonly to?: Hex;
  readonly error?: string;
  readonly calls?: readonly Frame[];
  readonly logs?: readonly Json[];
  readonly gas: Hex;
  readonly gasUsed: Hex;
  readonly output?: Hex;
}

/** Nodes word faults differently, and where an operation has several, they differ in which one counts. */
function faultOf(error: string): string {
  if (/revert/.test(error)) return 'reverted';
  return /insufficient balance|OutOfFunds|depth|CallTooDeep/i.test(error) ? 'not begun' : 'failed';
}

const isPrecompile = (to: Hex | undefined): boolean =>
  to !== undefined && BigInt(to) > 0n && BigInt(to) <= 0x100n;

/**
 * @param account the account whose code made this call.
 * @param isTop its gas in anvil is without the intrinsic gas, and its gas used the sum in the block or before refunds. Geth has
 *   the limit of the transaction and the gas of the receipt, which `gasOfTop` compares.
 */
function frameOf(
  { error, calls = [], logs, ...rest }: Frame,
  {
    isTop = false,
    isInFailed = false,
    account,
  }: { isTop?: boolean; isInFailed?: boolean; account?: Hex | undefined },
): unknown {
  const { gas, gasUsed, to, output, ...fields } = rest;
  // Anvil does not say who destroys itself in favour of itself: it shows nobody, or who sent ether to that contract last.
  const isToItself = rest.from === to || rest.from === NO_ADDRESS || to === account;
  if (rest.type === 'SELFDESTRUCT' && isToItself) return rest.type;
  const isInPlace = rest.type === 'DELEGATECALL' || rest.type === 'CALLCODE';
  const runs = isInPlace ? rest.from : to;
  const isCreation = String(rest.type).startsWith('CREATE');
  return {
    ...fields,
    ...(isTop ? {} : { gas, gasUsed }),
    // Geth and anvil disagree on the address of a contract whose creation failed.
    ...(isCreation && error !== undefined ? {} : { to }),
    // Geth leaves out the output of a frame that fails without REVERT.
    ...(output === undefined || output === '0x' ? {} : { output }),
    ...(error === undefined ? {} : { error: faultOf(error) }),
    // Anvil leaves out calls of precompiles, which geth shows.
    calls: calls
      .filter((call) => !isPrecompile(call.to))
      .map((call) => frameOf(call, { isInFailed: isInFailed || error !== undefined, account: runs })),
    // Geth leaves out logs of frames that fail, anvil those of frames that revert.
    logs:
      error !== undefined || isInFailed ? [] : (logs ?? []).map(({ index: _, position: __, ...log }) => log),
  };
}

interface State {
  readonly balance?: string;
  readonly nonce?: number;
  readonly code?: string;
  readonly codeHash?: string;
  readonly storage?: Readonly<Record<string, string>>;
}
type States = Readonly<Record<string, State>>;
interface Changes {
  readonly pre: States;
  readonly post: States;
}

function statesOf(states: States): States {
  return Object.fromEntries(
    Object.entries(states)
      // Fees go to an account of the sandbox, not to the coinbase, which is the address 0.
      .filter(([address]) => address !== NO_ADDRESS)
      .map(([address, account]) => {
        // Anvil 1.7.1 has no hashes of codes.
        const { balance = '0x0', codeHash: _, code, ...others } = account;
        // Geth shows code that was removed as `0x`.
        return [
          address,
          { balance, ...(code === undefined || code === '0x' ? {} : { code }), ...others },
        ] as const;
      })
      // Geth leaves out accounts that were empty, anvil shows them.
      .filter(
        ([, { balance, nonce, code }]) => balance !== '0x0' || nonce !== undefined || code !== undefined,
      )
      .sort(([one], [other]) => (one < other ? -1 : 1)),
  );
}

/** A trace of fewer characters is whole. */
const BOUNDED = 100_000;

interface Step {
  readonly pc: number;
  readonly op: string;
  readonly gas: number;
  readonly gasCost: number;
  readonly depth: number;
  readonly stack?: readonly string[];
}

/**
 * The steps of a trace. The refunds of anvil are those before a step, where geth has those after it; and its costs differ
 * from geth's for creations, and for the last step of a message, where it shows all the gas that is left.
 */
function stepsOf(ours: Answer, theirs: Answer): readonly [unknown, unknown] {
  if (!('result' in ours) || !('result' in theirs)) return [ours, theirs];
  const [one, other] = [ours.result as Steps, theirs.result as Steps];
  // Our traces are bounded: they have at most 10,000 steps and 1 MB of stacks.
  const isBounded = one.structLogs.length < other.structLogs.length && JSON.stringify(one).length > BOUNDED;
  const lines = [stepLines(one), stepLines(other)] as const;
  // The last ones are left out: they would look as if their message ended.
  const most = isBounded ? lines[0].steps.length - 2 : lines[1].steps.length;
  const cut = ({ steps, ...rest }: ReturnType<typeof stepLines>) => ({
    ...rest,
    steps: steps.slice(0, most),
  });
  return [cut(lines[0]), cut(lines[1])];
}

function stepLines({ structLogs, returnValue, failed }: Steps) {
  // Anvil shows a step in a message without code, where geth has none.
  const kept = structLogs.filter((step, at) => !isOfNoCode(step, structLogs[at - 1], structLogs[at + 1]));
  const steps = kept.map(({ pc, op, gas, gasCost, depth, stack }, at) => {
    const isLast = (kept[at + 1]?.depth ?? 0) < depth;
    const cost = isLast || op.startsWith('CREATE') ? '' : gasCost;
    // Without the gas for the memory of a REVERT, our trace does not show its operands.
    const operands = isLast && op === 'REVERT' ? '' : stack?.join(',');
    // Geth names the number of an undefined operation, anvil does not, or it has the name of a later hardfork.
    const name = /^(opcode |SLOTNUM|DUPN|SWAPN|EXCHANGE)/.test(op) ? 'Unknown' : op;
    return `${depth} ${pc} ${name} ${gas} ${cost} ${operands}`;
  });
  return { failed, returnValue, steps };
}

function isOfNoCode({ pc, op, depth }: Step, last: Step | undefined, next: Step | undefined): boolean {
  return op === 'STOP' && pc === 0 && (last?.depth ?? 0) < depth && (next?.depth ?? 0) < depth;
}

interface Steps {
  readonly structLogs: readonly Step[];
  readonly returnValue: string;
  readonly failed: boolean;
}

/** Whether anvil could not execute a transaction again, which is so for senders that an earlier one has delegated. */
const isUntraced = (answer: Answer | undefined): boolean =>
  answer !== undefined && 'result' in answer && (answer.result as Json | null)?.structLogs !== undefined;

const hasFault = ({ error, calls = [] }: Frame): boolean =>
  (error !== undefined && faultOf(error) === 'failed') || calls.some(hasFault);

/**
 * Both states, without what geth does not look at and one of the nodes shows: accounts and slots of the access list,
 * precompiled contracts, signers of authorizations that were skipped, and what an operation uses that fails.
 */
function looked(
  [ours, theirs]: readonly [States, States],
  {
    accessList,
    signers,
    isFaulty,
  }: { accessList: Sent['accessList']; signers: readonly Hex[]; isFaulty: boolean },
): readonly [States, States] {
  const listed = new Set(
    accessList.flatMap(({ address, storageKeys }) => [
      address,
      ...storageKeys.map((slot) => `${address} ${slot}`),
    ]),
  );
  const isOptional = (address: string): boolean =>
    isFaulty ||
    listed.has(address as Hex) ||
    isPrecompile(address as Hex) ||
    signers.includes(address as Hex);
  const kept = (one: States, other: States): States =>
    Object.fromEntries(
      Object.entries(one).flatMap(([address, { storage = {}, ...account }]) => {
        if (other[address] === undefined && isOptional(address)) return [];
        const slots = Object.entries(storage).filter(([slot]) => {
          const isShared = other[address]?.storage?.[slot] !== undefined;
          return isShared || !(isFaulty || listed.has(`${address} ${slot}` as Hex));
        });
        return [
          [address, { ...account, ...(slots.length === 0 ? {} : { storage: Object.fromEntries(slots) }) }],
        ];
      }),
    );
  return [kept(ours, theirs), kept(theirs, ours)];
}

/**
 * Whether our trace of calls is refused because it has more than 10 MB of inputs and outputs, which anvil writes in at
 * least 20 million hex digits.
 */
function isTooLarge(ours: Answer, theirs: Answer): boolean {
  const isRefused = 'error' in ours && ours.error.code === LIMIT_EXCEEDED;
  return isRefused && JSON.stringify(theirs).length > 20_000_000;
}

/** The code of EIP-1474 for a limit. */
const LIMIT_EXCEEDED = -32_005;

/** Both answers to each call about a transaction, where anvil has one. */
function traced(
  ours: readonly Answer[],
  theirs: readonly Answer[],
  map: (ours: never, theirs: never, index: number) => readonly [unknown, unknown],
): (readonly [unknown, unknown])[] {
  return ours.flatMap((answer, index) => {
    const other = theirs[index]!;
    // The longest traces need five seconds of a busy processor, where our execution ends and anvil's does not.
    if (isTooLarge(answer, other) || isTimeout(answer)) return [];
    if (!('result' in answer) || !('result' in other)) return [[answer, other] as const];
    return isUntraced(other) && !isUntraced(answer)
      ? []
      : [map(answer.result as never, other.result as never, index)];
  });
}

/** What both nodes say, in a form in which it must be equal: ours and theirs, by subject. */
export function comparable(
  { transactions }: Case,
  [here, there]: readonly [Seen, Seen],
): Record<string, readonly [unknown, unknown]> {
  const both = (kind: keyof Seen, map: (answer: Answer) => unknown): readonly [unknown, unknown] => [
    here[kind].map(map),
    there[kind].map(map),
  ];
  const result = (answer: Answer): unknown => ('result' in answer ? answer.result : answer);
  const faulty = there.callTraces.map((answer) => 'result' in answer && hasFault(answer.result as Frame));
  const pairs = {
    callTraces: traced(here.callTraces, there.callTraces, (ours: Frame, theirs: Frame) => [
      frameOf(ours, { isTop: true }),
      frameOf(theirs, { isTop: true }),
    ]),
    states: traced(here.states, there.states, (ours: States, theirs: States, index) => {
      const { accessList, signers } = transactions[index]!;
      const isFaulty = faulty[index] === true;
      return looked([statesOf(ours), statesOf(theirs)], { accessList, signers, isFaulty });
    }),
    changes: traced(here.changes, there.changes, (ours: Changes, theirs: Changes) => [
      { pre: statesOf(ours.pre), post: statesOf(ours.post) },
      { pre: statesOf(theirs.pre), post: statesOf(theirs.post) },
    ]),
    steps: here.steps.flatMap((answer, index) =>
      isTimeout(answer) ? [] : [stepsOf(answer, there.steps[index]!)],
    ),
  };
  const split = (all: readonly (readonly [unknown, unknown])[]) =>
    [all.map(([ours]) => ours), all.map(([, theirs]) => theirs)] as const;
  return {
    calls: both('calls', failureOf),
    sent: both('sent', (answer) => ('result' in answer ? answer.result : 'refused')),
    receipts: both('receipts', receiptOf),
    accounts: both('accounts', result),
    callTraces: split(pairs.callTraces),
    states: split(pairs.states),
    changes: split(pairs.changes),
    steps: split(pairs.steps),
  };
}
