import { argv, env, stdout } from 'node:process';
import { payOut } from './pay-out.ts';

// Pays one refund: `node refund.ts <order> <address> <amount>`, with the variables of `custos env`.
const [orderId = '', address = '', amount = ''] = argv.slice(2);
const { CUSTOS_BASE_URL: baseUrl = '', CUSTOS_APP_ID: appId = '', CUSTOS_APP_SECRET: appSecret = '' } = env;
const settings = { baseUrl, appId, appSecret, walletId: 'ext_wal_acme-ethereum' };
const transferId = await payOut(settings, { orderId, address, amount });
stdout.write(`${transferId}\n`);
