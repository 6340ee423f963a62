import assert from 'node:assert/strict';
import type { WalletActionType } from '../../../generated/schemas.ts';
import type { ActionType } from './action-type.ts';
import {
  earnDepositType,
  earnFeeCollectType,
  earnIncentiveClaimType,
  earnWithdrawType,
} from './earn-types.ts';
import { payoutType } from './payout-type.ts';
import { swapType } from './swap-type.ts';
import { transferType } from './transfer-type.ts';

/** The types of wallet actions that can be started. */
const actionTypes: Partial<Readonly<Record<WalletActionType, ActionType>>> = {
  payout: payoutType,
  transfer: transferType,
  earn_deposit: earnDepositType,
  earn_withdraw: earnWithdrawType,
  earn_incentive_claim: earnIncentiveClaimType,
  earn_fee_collect: earnFeeCollectType,
  swap: swapType,
};

/** The definition of a type. */
export function actionTypeOf(type: WalletActionType): ActionType {
  const definition = actionTypes[type];
  assert(definition !== undefined, `no definition of actions of type ${type}`);
  return definition;
}
