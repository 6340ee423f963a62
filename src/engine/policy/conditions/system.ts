import type { ConditionSource } from '../condition-source.ts';
import { ORDERING } from '../operators.ts';
import { present } from '../values.ts';

const MS_PER_SECOND = 1000;

/** The time of the request in Unix seconds. */
export const system: ConditionSource = {
  methods: undefined,
  resolve({ field }) {
    if (field !== 'current_unix_timestamp') return undefined;
    return {
      kind: 'number',
      operators: ORDERING,
      read: (_unit, { nowMs }) => present(String(Math.floor(nowMs / MS_PER_SECOND))),
    };
  },
};
