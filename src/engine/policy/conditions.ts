import type { ConditionSource } from './condition-source.ts';
import { actionRequestBody } from './conditions/action-request-body.ts';
import { ethereum7702Authorization } from './conditions/ethereum-7702-authorization.ts';
import { ethereumCalldata } from './conditions/ethereum-calldata.ts';
import { ethereumTransaction } from './conditions/ethereum-transaction.ts';
import { ethereumTypedDataDomain, ethereumTypedDataMessage } from './conditions/ethereum-typed-data.ts';
import { message } from './conditions/message.ts';
import { reference } from './conditions/reference.ts';
import {
  solanaProgramInstruction,
  solanaSystemProgramInstruction,
  solanaTokenProgramInstruction,
} from './conditions/solana-instructions.ts';
import { suiTransactionCommand, suiTransferObjectsCommand } from './conditions/sui-transaction.ts';
import { system } from './conditions/system.ts';
import { tempoTransaction } from './conditions/tempo-transaction.ts';
import { tronTransaction, tronTriggerSmartContractData } from './conditions/tron-transaction.ts';
import { xrplTransaction } from './conditions/xrpl-transaction.ts';

/** Every `field_source` of the API. For a new one, add a file in `conditions/` and a line here. */
export const conditionSources: Readonly<Record<string, ConditionSource>> = {
  action_request_body: actionRequestBody,
  ethereum_7702_authorization: ethereum7702Authorization,
  ethereum_calldata: ethereumCalldata,
  ethereum_transaction: ethereumTransaction,
  ethereum_typed_data_domain: ethereumTypedDataDomain,
  ethereum_typed_data_message: ethereumTypedDataMessage,
  message,
  reference,
  solana_program_instruction: solanaProgramInstruction,
  solana_system_program_instruction: solanaSystemProgramInstruction,
  solana_token_program_instruction: solanaTokenProgramInstruction,
  sui_transaction_command: suiTransactionCommand,
  sui_transfer_objects_command: suiTransferObjectsCommand,
  system,
  tempo_transaction: tempoTransaction,
  tron_transaction: tronTransaction,
  tron_trigger_smart_contract_data: tronTriggerSmartContractData,
  xrpl_transaction: xrplTransaction,
};
