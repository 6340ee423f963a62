import { useSignal } from '@preact/signals';

interface ConfirmButtonProps {
  readonly children: string;
  /** The question that the second press confirms, such as `Delete funded?`. */
  readonly question: string;
  readonly label?: string;
  readonly disabled?: boolean;
  readonly onConfirm: () => void;
}

/** A button that must be pressed twice. Escape, or moving the focus away, cancels the first press. */
export function ConfirmButton({ children, question, label, disabled, onConfirm }: ConfirmButtonProps) {
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
      class={isAsking.value ? 'main' : ''}
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
      {isAsking.value ? question : children}
    </button>
  );
}
