import type { ConditionSource } from '../condition-source.ts';
import { calldataField } from './abi-calldata.ts';
import { ETHEREUM_CALL_METHODS, readCall } from './ethereum-transaction.ts';

export const ethereumCalldata: ConditionSource = {
  methods: ETHEREUM_CALL_METHODS,
  resolve: (condition) => calldataField(condition, (unit, read) => readCall(unit, ({ data }) => read(data))),
};
