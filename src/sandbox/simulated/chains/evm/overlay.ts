import { bytesToHex } from '../../../../engine/crypto/encoding.ts';
import { type Ledger, NATIVE, RevertError } from '../ledger.ts';
import { tokenAllowances, withTokens } from './contracts/token-storage.ts';
import { type Bytecode, type EvmState, ZERO_WORD } from './state.ts';

const MAX_AMOUNT = 2n ** 256n - 1n;

/** The changes of one execution on top of the stored state. Nothing is stored before `apply`. */
export interface Overlay {
  /** `contracts`, `registerToken` and `recordDeposit` access the stored state directly. */
  readonly state: EvmState;
  checkpoint(): void;
  /** Accepts the changes since the last checkpoint. */
  commit(): void;
  /** Undoes the changes since the last checkpoint. */
  revert(): void;
  /** Removes a contract's code, and zeroes every slot that it has written in this execution. */
  erase(address: string): void;
  /** Returns the word of a slot before this execution. */
  originalWord(address: string, slot: string): string;
  /** Returns everything that was read: its value before this execution, and its current value. */
  cells(): Iterable<readonly [key: string, cell: { readonly original: unknown; readonly value: unknown }]>;
  /** Returns whether the stored values still equal the values that were read. */
  isCurrent(): boolean;
  /** Stores the changes. Must be called in a transaction of the store, after `isCurrent` returned true. */
  apply(): void;
}

/** One stored value, as it was read and as it is now. */
interface Cell<T> {
  readonly original: T;
  value: T;
  read(): T;
  write(value: T): void;
  isSame(one: T, other: T): boolean;
}

/**
 * Reads the stored state and keeps all changes in memory.
 *
 * @param recalled values that are read instead of the stored state, by key.
 */
export function makeOverlay(base: EvmState, recalled?: ReadonlyMap<string, unknown>): Overlay {
  const cells = new Map<string, Cell<unknown>>();
  const undo: (() => void)[] = [];
  const checkpoints: number[] = [];

  function cell<T>(key: string, access: Pick<Cell<T>, 'read' | 'write'> & { isSame?: Cell<T>['isSame'] }) {
    const known = cells.get(key) as Cell<T> | undefined;
    if (known !== undefined) return known;
    const original = recalled?.has(key) === true ? (recalled.get(key) as T) : access.read();
    const made: Cell<T> = { isSame: Object.is, ...access, original, value: original };
    cells.set(key, made as Cell<unknown>);
    return made;
  }

  function set<T>(of: Cell<T>, value: T): void {
    const before = of.value;
    undo.push(() => {
      of.value = before;
    });
    of.value = value;
  }

  const balanceOf = (owner: string) =>
    cell<bigint>(`balance ${owner}`, {
      read: () => base.ledger.balance(owner, NATIVE),
      write: (amount) => base.ledger.setBalance(owner, NATIVE, amount),
    });
  const nonceOf = (address: string, lane: string) =>
    cell<number>(`nonce ${address} ${lane}`, {
      read: () => base.accounts.nonce(address, lane),
      write: (nonce) => base.accounts.setNonce(address, lane, nonce),
    });
  const delegateOf = (address: string) =>
    cell<string | undefined>(`delegate ${address}`, {
      read: () => base.accounts.delegate(address),
      write: (contract) => base.accounts.setDelegate(address, contract),
    });
  const codeOf = (address: string) =>
    cell<Uint8Array>(`code ${address}`, {
      read: () => base.bytecode.code(address),
      write: (code) => base.bytecode.setCode(address, code),
      isSame: (one, other) => one.length === other.length && bytesToHex(one) === bytesToHex(other),
    });
  const wordOf = (address: string, slot: string) =>
    cell<string>(`word ${address} ${slot}`, {
      read: () => base.bytecode.word(address, slot),
      write: (word) => base.bytecode.setWord(address, slot, word),
    });
  const bytecode: Bytecode = {
    code: (address) => codeOf(address).value,
    setCode: (address, code) => set(codeOf(address), code),
    word: (address, slot) => wordOf(address, slot).value,
    setWord: (address, slot, word) => set(wordOf(address, slot), word),
  };
  const native: Ledger = {
    balance: (owner) => balanceOf(owner).value,
    setBalance: (owner, _, amount) => set(balanceOf(owner), amount),
    debit({ owner, amount, shortfall }) {
      const held = balanceOf(owner);
      if (held.value < amount) throw new RevertError(shortfall, true);
      set(held, held.value - amount);
    },
    credit(owner, _, amount) {
      const held = balanceOf(owner);
      if (held.value + amount > MAX_AMOUNT) throw new RevertError('the balance would exceed 2^256 - 1');
      set(held, held.value + amount);
    },
    total(asset) {
      let sum = base.ledger.total(asset);
      for (const [key, { original, value }] of cells) {
        if (key.startsWith('balance ')) sum += (value as bigint) - (original as bigint);
      }
      return sum;
    },
  };
  const state: EvmState = {
    ...{ ...base, bytecode, ledger: withTokens(native, bytecode) },
    accounts: {
      ...{ ...base.accounts, ...tokenAllowances(bytecode) },
      nonce: (address, lane) => nonceOf(address, lane).value,
      setNonce: (address, lane, nonce) => set(nonceOf(address, lane), nonce),
      delegate: (address) => delegateOf(address).value,
      setDelegate: (address, contract) => set(delegateOf(address), contract),
    },
  };

  return {
    state,
    checkpoint: () => void checkpoints.push(undo.length),
    commit: () => void checkpoints.pop(),
    revert() {
      const length = checkpoints.pop() ?? 0;
      while (undo.length > length) undo.pop()!();
    },
    erase(address) {
      const prefix = `word ${address} `;
      for (const [key, each] of cells) if (key.startsWith(prefix)) set(each, ZERO_WORD);
      set(codeOf(address), new Uint8Array());
    },
    cells: () => cells,
    originalWord: (address, slot) => wordOf(address, slot).original,
    isCurrent: () => [...cells.values()].every(({ read, original, isSame }) => isSame(read(), original)),
    apply() {
      for (const { value, original, isSame, write } of cells.values()) {
        if (!isSame(value, original)) write(value);
      }
    },
  };
}
