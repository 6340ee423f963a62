import type { SandboxSigner } from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { SentResult, SignerChoice, useSending, useSigners } from '../parts/sent-result.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { ownerSigners } from '../wallet-facts.ts';

interface ReplayBoxProps {
  readonly id: string;
  readonly operation: string | null;
  /** The id of the wallet of the request. */
  readonly walletId: string | undefined;
}

/** A box that sends a recorded request again, either unchanged or signed with keys of the seed data. */
export function ReplayBox({ id, operation, walletId }: ReplayBoxProps) {
  const sending = useSending();
  const { value: owner } = useLoaded(
    async (signal) => {
      if (walletId === undefined) return null;
      const { data } = await control('listSandboxWallets', { query: { search: walletId } }, signal);
      return data.find((wallet) => wallet.id === walletId)?.owner ?? null;
    },
    [walletId],
  );
  const chosen = useSigners(owner.value);
  const isOwned = owner.value !== null && owner.value !== undefined;
  const canSign = ownerSigners(owner.value).length > 0;
  const replay = (body: { sign_as?: SandboxSigner[] }) =>
    sending.run(() => control('replayRequest', { path: { request_id: id }, body }));
  return (
    <section aria-label="Send again" class="card">
      <h3>Send again</h3>
      <SignerChoice chosen={chosen} owner={walletId === undefined ? undefined : owner.value} />
      {isOwned && !canSign && (
        <p class="quiet small">
          The sandbox has no key of the owner. Sign with yours in a terminal:{' '}
          <code>{`npx custos call ${operation ?? '<operation>'} ${walletId} … --key your.pem`}</code>
        </p>
      )}
      <p class="actions">
        <button
          type="button"
          disabled={sending.isRunning.value || chosen.value.length === 0}
          onClick={() => replay({ sign_as: [...chosen.value] })}
        >
          Signed again
        </button>
        <button type="button" disabled={sending.isRunning.value} onClick={() => replay({})}>
          As it was
        </button>
      </p>
      <SentResult sending={sending} />
    </section>
  );
}
