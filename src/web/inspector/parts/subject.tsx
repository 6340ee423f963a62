import type { SandboxNamed, SandboxNamedWallet, SandboxSubject } from '../../../sandbox/generated/schemas.ts';
import { inWords, walletText } from '../names.ts';
import { hrefOf } from '../routes.ts';
import { Named } from './copy.tsx';
import { Fact } from './fact.tsx';

/** The pages of resources that are the subject of requests and events, besides wallets and users. */
const pages: Readonly<Record<string, string>> = {
  ...{ transaction: 'transactions', wallet_action: 'actions', intent: 'intents', policy: 'policies' },
  ...{ key_quorum: 'quorums', webhook_endpoint: 'webhooks', app: 'apps' },
};

/** The wallet, the user and the other resource that a request or an event is about, for a `dl`. */
export function SubjectFacts({
  of: { subject, wallet, user },
}: {
  readonly of: {
    readonly subject: SandboxSubject | null;
    readonly wallet: SandboxNamedWallet | null;
    readonly user: SandboxNamed | null;
  };
}) {
  const page = subject === null ? undefined : pages[subject.type];
  const isOther = subject !== null && !(subject.type === 'wallet' || subject.type === 'user');
  return (
    <>
      {wallet !== null && (
        <Fact name="Wallet">
          <Named id={wallet.id} what="the wallet's id" href={hrefOf('wallets', [wallet.id])}>
            {walletText(wallet)}
          </Named>
        </Fact>
      )}
      {user !== null && (
        <Fact name="User">
          <Named id={user.id} what="the user's id" href={hrefOf('users', [user.id])}>
            {user.name ?? undefined}
          </Named>
        </Fact>
      )}
      {isOther && (
        <Fact name={inWords(subject.type)}>
          <Named
            id={subject.id}
            what={`the id of the ${subject.type.replaceAll('_', ' ')}`}
            href={page === undefined ? undefined : hrefOf(page, [subject.id])}
          >
            {subject.name ?? undefined}
          </Named>
        </Fact>
      )}
    </>
  );
}
