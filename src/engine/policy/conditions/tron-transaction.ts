import type { ActionUnit } from '../action.ts';
import type { ConditionSource } from '../condition-source.ts';
import { absent, type Observation, present, unreadable } from '../values.ts';
import { calldataField } from './abi-calldata.ts';

type TronContract = NonNullable<ActionUnit['tronContract']>;

const METHODS = ['tron_signTransaction', 'tron_sendTransaction', 'signTransactionBytes'];

const FIELDS: Readonly<Record<string, 'number' | 'tron_address'>> = {
  'TransferContract.to_address': 'tron_address',
  'TransferContract.amount': 'number',
  'TriggerSmartContract.contract_address': 'tron_address',
  'TriggerSmartContract.call_value': 'number',
  'TriggerSmartContract.token_id': 'number',
  'TriggerSmartContract.call_token_value': 'number',
};

function readContract(unit: ActionUnit, read: (contract: TronContract) => Observation): Observation {
  if (unit.undecodable !== undefined) return unreadable(unit.undecodable);
  return unit.tronContract === undefined ? absent('not a Tron contract') : read(unit.tronContract);
}

/** The fields of the contract in a Tron transaction (Tron's word for its operation). */
export const tronTransaction: ConditionSource = {
  methods: METHODS,
  resolve({ field }) {
    const kind = Object.hasOwn(FIELDS, field) ? FIELDS[field] : undefined;
    if (kind === undefined) return undefined;
    const [type = '', member = ''] = field.split('.');
    return {
      kind,
      read: (unit) =>
        readContract(unit, (contract) => {
          if (contract.type !== type) return absent(`the contract is ${contract.type}`);
          const value = contract.fields[member];
          return value === undefined ? absent(`the contract has no ${member}`) : present(value.toString());
        }),
    };
  },
};

/** The calldata of a TriggerSmartContract. */
export const tronTriggerSmartContractData: ConditionSource = {
  methods: METHODS,
  resolve: (condition) =>
    calldataField(condition, (unit, read) =>
      readContract(unit, ({ data }) =>
        data === undefined ? absent('the contract carries no calldata') : read(data),
      ),
    ),
};
