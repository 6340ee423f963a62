import { callNode, NodeError, nameOfNode } from '../../../../adapters/chain-rpc/endpoint.ts';
import { ChainUnavailableError } from '../../../../adapters/outside-services.ts';
import { hexToBytes } from '../../../../engine/crypto/encoding.ts';
import { openAnswers } from '../store-answers.ts';
import type { Beginning } from './beginning.ts';

/**
 * A simulated chain can fork a real one, its upstream. Missing state is fetched from a node and stored permanently in
 * a file. No transaction is ever sent to the node.
 *
 * Executions and transactions of the store read state synchronously. A read of a value that is not in the file throws
 * MissingStateError; `settle` then fetches the value and runs the work again.
 */

/** A real chain to fork. */
export interface ForkSource {
  readonly caip2: string;
  readonly url: string;
  /** The last block of the real chain that the fork contains; undefined for the latest. */
  readonly block?: number | undefined;
}

/** The state of a real chain after one of its blocks. */
export interface Upstream extends Beginning {
  readonly block: number;
  blockHash(number: number): string;
  /**
   * Calls a method about this block or an earlier one.
   *
   * @throws NodeError, UpstreamUnavailableError
   */
  ask(method: string, params: readonly unknown[]): Promise<unknown>;
  close(): void;
}

const TIMEOUT_MS = 10_000;
const ATTEMPTS = 2;
/** CHOICE: work that waits for missing values fails after this time. */
const SETTLE_MS = 60_000;
/** The beginning of a delegated account's code (EIP-7702). */
const DELEGATION = '0xef0100';
const NO_CODE = new Uint8Array();

/** Thrown when the node of a real chain cannot be reached or serves a different chain. */
export class UpstreamUnavailableError extends ChainUnavailableError {
  /** `isUnavailable` and `unavailableThing` in `errors.ts` recognize this class by these members. */
  readonly isUnavailable = true;
  readonly unavailable = 'the node of the forked chain';
}

/** Thrown when state is read that has not been fetched from the real chain yet. */
class MissingStateError extends Error {
  readonly load: () => Promise<void>;

  constructor(load: () => Promise<void>) {
    super('a value of the real chain is not known yet');
    this.name = 'MissingStateError';
    this.load = load;
  }
}

/**
 * Runs work. Whenever a value is missing, fetches it and runs the work again from the start. So the work must have no
 * effects until it has read everything.
 */
export async function settle<T>(work: () => T | Promise<T>): Promise<T> {
  const endMs = performance.now() + SETTLE_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof MissingStateError)) throw error;
      if (performance.now() > endMs) {
        throw new UpstreamUnavailableError(
          `the state of the real chain could not be read in ${SETTLE_MS} ms`,
        );
      }
      await error.load();
    }
  }
}

export function settled<T extends object>(methods: T): T {
  const entries = Object.entries(methods).map(([name, value]) => [
    name,
    typeof value === 'function' ? (...parameters: unknown[]) => settle(() => value(...parameters)) : value,
  ]);
  return Object.fromEntries(entries) as T;
}

/**
 * Opens the state of a real chain.
 *
 * @param folder where fetched values are stored.
 * @param begun the block at which an earlier start forked the chain, if any.
 * @throws UpstreamUnavailableError if the node is needed and cannot be reached.
 */
export async function openUpstream(
  { caip2, url, block }: ForkSource,
  { folder, begun }: { folder: string; begun: number | undefined },
): Promise<Upstream> {
  const last = block ?? begun ?? Number(await ask('eth_blockNumber', []));
  const answers = openAnswers(folder, `${caip2.replace(':', '-')}-${last}`);
  const at = quantity(last);
  const loading = new Map<string, Promise<unknown>>();

  async function ask(method: string, params: readonly unknown[]): Promise<unknown> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await callNode(url, { method, params, timeoutMs: TIMEOUT_MS });
      } catch (error) {
        if (!(error instanceof ChainUnavailableError)) throw error;
        if (attempt === ATTEMPTS) throw new UpstreamUnavailableError(error.message, { cause: error });
      }
    }
  }

  /** Fetches a value once, and stores it. */
  async function load(method: string, params: readonly unknown[]): Promise<unknown> {
    const key = JSON.stringify([method, ...params]);
    const kept = answers.find(key);
    if (kept !== undefined) return kept;
    const running = loading.get(key) ?? ask(method, params).then((answer) => answers.keep(key, answer));
    loading.set(key, running);
    try {
      return await running;
    } finally {
      loading.delete(key);
    }
  }

  /**
   * Returns a value that was fetched before.
   *
   * @throws MissingStateError
   */
  function read(
    method: string,
    params: readonly unknown[],
    more: readonly (readonly [string, readonly unknown[]])[] = [],
  ): string {
    const kept = answers.find(JSON.stringify([method, ...params]));
    if (typeof kept === 'string') return kept;
    throw new MissingStateError(async () => {
      const calls = [[method, params], ...more] as const;
      const loaded = await Promise.all(calls.map((call) => loadState(...call)));
      if (!loaded.every((value) => typeof value === 'string' && /^0x[0-9a-f]*$/i.test(value))) {
        throw unavailable(`expected hex as the answer to ${method}`);
      }
    });
  }

  async function loadState(method: string, params: readonly unknown[]): Promise<unknown> {
    try {
      return await load(method, params);
    } catch (error) {
      // Only archive nodes have the state of earlier blocks.
      if (error instanceof NodeError) throw unavailable(`${method} is refused: ${error.message}`);
      throw error;
    }
  }

  function unavailable(what: string): UpstreamUnavailableError {
    return new UpstreamUnavailableError(
      `${nameOfNode(url)}, which ${caip2} continues at block ${last}: ${what}`,
    );
  }

  const methods = ['eth_getCode', 'eth_getBalance', 'eth_getTransactionCount'] as const;
  /** Returns one of an account's values: its balance, nonce or code. Fetches all three together. */
  const account = (method: (typeof methods)[number], address: string): string => {
    const others = methods
      .filter((other) => other !== method)
      .map((other) => [other, [address, at]] as const);
    return read(method, [address, at], others);
  };
  const codeText = (address: string): string => account('eth_getCode', address);
  const codes = new Map<string, Uint8Array>();
  const chainId = await loadState('eth_chainId', []);
  if (`eip155:${Number(chainId)}` !== caip2) {
    throw unavailable(`expected a node of ${caip2}, got one of eip155:${Number(chainId)}`);
  }
  return {
    block: last,
    code(address) {
      const text = codeText(address);
      if (text === '0x' || text.startsWith(DELEGATION)) return NO_CODE;
      // Equal code is always the same array, so that its hash is computed only once.
      const code = codes.get(address) ?? hexToBytes(text.slice(2));
      codes.set(address, code);
      return code;
    },
    delegate(address) {
      const text = codeText(address).toLowerCase();
      return text.startsWith(DELEGATION) ? `0x${text.slice(DELEGATION.length)}` : undefined;
    },
    word(address, slot) {
      // An account without code has no storage, so the slots of new contracts need not be fetched.
      if (codeText(address) === '0x') return '0'.repeat(64);
      return read('eth_getStorageAt', [address, `0x${slot}`, at])
        .slice(2)
        .padStart(64, '0')
        .toLowerCase();
    },
    native: (address) => BigInt(account('eth_getBalance', address)),
    nonce: (address) => Number(account('eth_getTransactionCount', address)),
    blockHash(number) {
      const key = ['eth_getBlockByNumber', quantity(number), false] as const;
      const kept = answers.find(JSON.stringify(key)) as { hash: string } | null | undefined;
      if (kept != null) return kept.hash;
      throw new MissingStateError(async () => {
        const [method, ...params] = key;
        if ((await loadState(method, params)) === null) throw unavailable(`block ${number} is not known`);
      });
    },
    ask: load,
    close: answers.close,
  };
}

function quantity(value: number): string {
  return `0x${value.toString(16)}`;
}
