import { messageBody } from './messages.ts';
import type { Scenario } from './scenarios.ts';

export const intentExpired: Scenario = {
  name: 'intent-expired',
  summary: 'A proposal without authorization expires after 72 hours. Advances the clock.',
  async play(stage) {
    const { context, alice } = stage;
    const wallet = await stage.create('wallet', 'Alice gets a wallet', {
      operation: 'createWallet',
      body: { chain_type: 'ethereum', owner: { public_key: alice.publicKey } },
    });
    const intent = await stage.create('intent', 'The app proposes to sign a message with it', {
      operation: 'createWalletRpcIntent',
      path: { wallet_id: wallet },
      body: messageBody,
    });
    const read = { operation: 'getIntent', path: { intent_id: intent } };
    const { body } = await stage.call('It waits for Alice', read);
    context.clock.advance(Number(body.expires_at) + 1 - context.clock.now());
    await context.finishJobs();
    stage.note('The clock passes the expiry');
    await stage.call('It is expired', read);
    return [`custos call getIntent ${intent}`, 'custos events list --events intent.*'];
  },
};
