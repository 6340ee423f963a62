import { type Hex, keccak256, numberToHex } from 'viem';
import type { Case } from './cases.ts';
import { type Answer, type Call, type Node, type Pair, resultOf } from './pair.ts';
import { SLOTS } from './programs.ts';

// What a node says of transactions, before and after.

/** Places the accounts on a node. */
async function place(node: Node, { accounts }: Case): Promise<void> {
  // The calls of one message have five seconds together, so each account has a message of its own.
  for (const { address, balance, nonce, code, words } of accounts) {
    const calls: Call[] = [
      ['anvil_setBalance', address, numberToHex(balance)],
      ...(nonce === 0 ? [] : [['anvil_setNonce', address, numberToHex(nonce)] as Call]),
      ...(code === '0x' ? [] : [['anvil_setCode', address, code] as Call]),
      ...words.flatMap((word, slot): Call[] =>
        word === 0n
          ? []
          : [['anvil_setStorageAt', address, numberToHex(slot), numberToHex(word, { size: 32 })]],
      ),
    ];
    for (const answer of await node(...calls)) resultOf(answer);
  }
}

export interface Seen {
  readonly calls: readonly Answer[];
  readonly estimates: readonly Answer[];
  readonly sent: readonly Answer[];
  readonly receipts: readonly Answer[];
  readonly callTraces: readonly Answer[];
  readonly states: readonly Answer[];
  readonly changes: readonly Answer[];
  readonly steps: readonly Answer[];
  readonly accounts: readonly Answer[];
}

async function before(
  node: Node,
  { transactions, isEstimated }: Case,
): Promise<Pick<Seen, 'calls' | 'estimates'>> {
  // Later transactions may need what earlier ones do.
  const [first] = transactions;
  const { gas: _, ...unlimited } = first!.call;
  const estimate: Call = ['eth_estimateGas', unlimited, 'latest'];
  const answers = await node(['eth_call', first!.call, 'latest'], ...(isEstimated ? [estimate] : []));
  return { calls: answers.slice(0, 1), estimates: answers.slice(1) };
}

/** What both nodes say of the first transaction with the gas that we have estimated. */
async function withEstimate(
  nodes: readonly Node[],
  { transactions: [first] }: Case,
  estimate: Answer | undefined,
): Promise<readonly Answer[]> {
  if (estimate === undefined || !('result' in estimate)) return [];
  const call: Call = ['eth_call', { ...first!.call, gas: estimate.result }, 'latest'];
  const answers = await Promise.all(nodes.map((node) => node(call)));
  return answers.flat();
}

async function sendAll(node: Node, { transactions }: Case): Promise<readonly Answer[]> {
  const answers: Answer[] = [];
  for (const { signed } of transactions) answers.push(...(await node(['eth_sendRawTransaction', signed])));
  return answers;
}

async function after(
  node: Node,
  { watched, transactions }: Case,
): Promise<Omit<Seen, 'calls' | 'estimates' | 'sent'>> {
  const hashes = transactions.map(({ signed }) => keccak256(signed));
  // The calls of one message have five seconds together, so each trace has a message of its own.
  const of = async (method: string, ...params: unknown[]): Promise<readonly Answer[]> => {
    const answers: Answer[] = [];
    for (const hash of hashes) answers.push(...(await node([method, hash, ...params])));
    return answers;
  };
  const receipts = await of('eth_getTransactionReceipt');
  const created = receipts.flatMap((answer) => {
    const { contractAddress } = (('result' in answer ? answer.result : undefined) ?? {}) as {
      contractAddress?: Hex;
    };
    return contractAddress == null ? [] : [contractAddress];
  });
  const addresses = [...watched, ...created];
  return {
    receipts,
    callTraces: await of('debug_traceTransaction', { tracer: 'callTracer', tracerConfig: { withLog: true } }),
    states: await of('debug_traceTransaction', { tracer: 'prestateTracer' }),
    changes: await of('debug_traceTransaction', {
      tracer: 'prestateTracer',
      tracerConfig: { diffMode: true },
    }),
    steps: await of('debug_traceTransaction', {}),
    accounts: await node(
      ...addresses.flatMap((address): Call[] => [
        ...(['eth_getBalance', 'eth_getTransactionCount', 'eth_getCode'] as const).map(
          (method): Call => [method, address, 'latest'],
        ),
        ...Array.from(
          { length: SLOTS },
          (_, slot): Call => ['eth_getStorageAt', address, numberToHex(slot), 'latest'],
        ),
      ]),
    ),
  };
}

/** What both nodes say of the same transactions. */
export async function bothSee(
  { here, there, mine }: Pair,
  one: Case,
): Promise<{ readonly seen: readonly [Seen, Seen]; readonly withEstimate: readonly Answer[] }> {
  const nodes = [here, there] as const;
  await Promise.all(nodes.map((node) => place(node, one)));
  const earlier = await Promise.all(nodes.map((node) => before(node, one)));
  const estimated = await withEstimate(nodes, one, earlier[0]!.estimates[0]);
  const sent = await Promise.all(nodes.map((node) => sendAll(node, one)));
  await mine();
  const later = await Promise.all(nodes.map((node) => after(node, one)));
  const [first, second] = nodes.map((_, at) => ({ ...earlier[at]!, sent: sent[at]!, ...later[at]! }));
  return { seen: [first!, second!], withEstimate: estimated };
}
