import { keccak256, toHex } from 'viem';
import { type Scripted, startScriptedNode } from '../scripted-node.ts';

/** A log or a transaction of a scripted block. */
interface NodeBlock {
  readonly transactions?: readonly object[];
  readonly logs?: readonly object[];
  /** Distinguishes blocks of the same number. */
  readonly fork?: string;
}

export interface NodeChain {
  readonly caip2: string;
  /** The blocks by number. A block without an entry is empty. */
  readonly blocks: Map<number, NodeBlock>;
  head: number;
  /** Returns a special response to a call. Undefined selects the usual response. */
  answer: (method: string, params: readonly unknown[]) => Scripted | undefined;
}

/** The state of a chain, for tests that decide what each node reports. */
export function makeNodeChain(caip2: string, head = 0): NodeChain {
  return { caip2, blocks: new Map(), head, answer: () => undefined };
}

export function blockHash(chain: NodeChain, number: number): string {
  return keccak256(toHex(`${chain.caip2} ${number} ${chain.blocks.get(number)?.fork ?? ''}`));
}

/** Starts a node of the chain, with the methods that the reading of transfers needs. */
export function startNodeOf(chain: NodeChain) {
  return startScriptedNode(
    (method, params) => chain.answer(method, params) ?? answerOf(chain, method, params),
  );
}

function answerOf(chain: NodeChain, method: string, params: readonly unknown[]): Scripted {
  switch (method) {
    case 'eth_chainId':
      return { result: toHex(Number(chain.caip2.split(':')[1])) };
    case 'eth_blockNumber':
      return { result: toHex(chain.head) };
    case 'eth_getBlockByNumber':
      return { result: blockOf(chain, Number(params[0])) };
    case 'eth_getLogs':
      return { result: logsOf(chain, params[0] as { blockHash: string; address?: string[] }) };
    case 'eth_getTransactionReceipt':
      return { result: receiptOf(chain, params[0] as string) };
    default:
      return { error: { code: -32601, message: 'method not found' } };
  }
}

function blockOf(chain: NodeChain, number: number) {
  if (number > chain.head) return null;
  return {
    number: toHex(number),
    hash: blockHash(chain, number),
    parentHash: blockHash(chain, number - 1),
    timestamp: toHex(1_767_225_600 + number),
    transactions: (chain.blocks.get(number)?.transactions ?? []).map((transaction, index) => ({
      transactionIndex: toHex(index),
      ...transaction,
    })),
  };
}

function logsOf(chain: NodeChain, { blockHash: hash, address }: { blockHash: string; address?: string[] }) {
  return [...chain.blocks]
    .filter(([number]) => blockHash(chain, number) === hash)
    .flatMap(([, { logs = [] }]) =>
      logs.map((log, index) => ({ blockHash: hash, logIndex: toHex(index), removed: false, ...log })),
    )
    .filter((log) => address === undefined || address.includes((log as { address?: string }).address ?? ''));
}

function receiptOf(chain: NodeChain, hash: string) {
  for (const [number, { transactions = [] }] of chain.blocks) {
    const found = transactions.find((transaction) => (transaction as { hash: string }).hash === hash);
    if (found !== undefined) return { blockHash: blockHash(chain, number), status: '0x1' };
  }
  return null;
}
