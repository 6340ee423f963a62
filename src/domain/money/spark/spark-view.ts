import type { SparkCurrencyAmount } from '../../../generated/schemas.ts';

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

export function satoshi(sats: bigint): SparkCurrencyAmount {
  return { original_value: Number(sats), original_unit: 'SATOSHI' };
}
