import { useSignal } from '@preact/signals';
import type { IconNode } from 'lucide';
import { Icon } from './icon.tsx';

interface ConfirmButtonProps {
  readonly children: string;
  /** The question that the second press confirms, such as `Delete funded?`. */
  readonly question: string;
  readonly label?: string;
  readonly icon?: IconNode;
  readonly disabled?: boolean;
  readonly onConfirm: () => void;
}

/** A button that must be pressed twice. Escape, or moving the focus away, cancels the first press. */
export function ConfirmButton({ children, question, label, icon, disabled, onConfirm }: ConfirmButtonProps) {
  const isAsking = useSignal(false);
  const press = (): void => {
    if (isAsking.value) onConfirm();
    isAsking.value = !isAsking.value;
  };
  const takeBack = (): void => {
    isAsking.value = false;
  };
  return (
    <button
      type="button"
      class={isAsking.value ? 'danger' : icon === undefined ? '' : 'plain'}
      disabled={disabled ?? false}
      aria-label={isAsking.value ? question : (label ?? children)}
      onClick={press}
      onBlur={takeBack}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !isAsking.value) return;
        event.preventDefault();
        takeBack();
      }}
    >
      {icon !== undefined && <Icon of={icon} />} {isAsking.value ? question : children}
    </button>
  );
}
