import type { ActionUnit, SuiCommand } from '../action.ts';
import { type ConditionSource, expectCaseOf } from '../condition-source.ts';
import type { Operator } from '../operators.ts';
import { absent, type Observation, presentAll, unreadable } from '../values.ts';

const METHODS = ['signTransactionBytes'];
const NAME_OPERATORS: readonly Operator[] = ['eq', 'in'];

function readCommands(unit: ActionUnit, read: (commands: readonly SuiCommand[]) => Observation): Observation {
  if (unit.undecodable !== undefined) return unreadable(unit.undecodable);
  if (unit.suiCommands === undefined) return absent('not a Sui transaction');
  return unit.suiCommands.length === 0 ? absent('a transaction without commands') : read(unit.suiCommands);
}

function readTransfers(unit: ActionUnit, read: (transfer: SuiCommand) => string | undefined): Observation {
  return readCommands(unit, (commands) => {
    // An unsupported command may transfer anything, so the transaction's transfers are unknown.
    if (commands.some(({ name }) => name === undefined)) return unreadable('an unsupported command');
    const transfers = commands.filter(({ name }) => name === 'TransferObjects').map(read);
    if (transfers.length === 0) return absent('no TransferObjects command');
    return transfers.every((value) => value !== undefined)
      ? presentAll(transfers)
      : unreadable('a transfer whose recipient or amount is not a pure input');
  });
}

/** The names of all commands in the transaction. An ALLOW requires that all of them match. */
export const suiTransactionCommand: ConditionSource = {
  methods: METHODS,
  resolve({ field }) {
    if (field !== 'commandName') return undefined;
    return {
      kind: 'text',
      operators: NAME_OPERATORS,
      expectedInstead: expectCaseOf(['TransferObjects', 'SplitCoins', 'MergeCoins']),
      read: (unit) =>
        readCommands(unit, (commands) => {
          const names = commands.map(({ name }) => name);
          return names.every((name) => name !== undefined)
            ? presentAll(names)
            : unreadable('an unsupported command');
        }),
    };
  },
};

export const suiTransferObjectsCommand: ConditionSource = {
  methods: METHODS,
  resolve({ field }) {
    switch (field) {
      case 'recipient':
        return {
          kind: 'sui_address',
          read: (unit) => readTransfers(unit, ({ recipient }) => recipient),
        };
      case 'amount':
        return { kind: 'number', read: (unit) => readTransfers(unit, ({ amount }) => amount?.toString()) };
      default:
        return undefined;
    }
  },
};
