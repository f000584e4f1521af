;;; emacs.el --- What Emacs does in place of a user  -*- lexical-binding: t; -*-

;;; Code:

(require 'package)
(require 'json)
;; As in any user's Emacs: packages are found and their autoloads loaded.
(setq package-directory-list (list (getenv "DG_TEST_PACKAGES")))
(package-initialize)
(setq lsp-session-file (expand-file-name "session" temporary-file-directory)
      lsp-auto-guess-root t
      lsp-enable-snippet nil
      lsp-enable-suggest-server-download nil
      lsp-warn-no-matched-clients nil)
(require 'dg)

(defun dg-test-until (holds)
  "Wait until HOLDS returns something, and return it."
  (let ((ends (+ (float-time) 120)) value)
    (while (and (not (setq value (funcall holds))) (< (float-time) ends))
      (accept-process-output nil 0.2))
    (or value (error "Waited in vain"))))

(defun dg-test-shown ()
  "Ask for a suggestion, and return what is shown behind the cursor."
  (lsp-inline-completion-display)
  (when (lsp-inline-completion--active-p)
    (substring-no-properties (overlay-get lsp-inline-completion--overlay 'after-string))))

(setq dg-command (json-parse-string (getenv "DG_TEST_COMMAND") :array-type 'list)
      dg-settings (json-parse-string (getenv "DG_TEST_SETTINGS") :object-type 'plist :false-object :json-false))
(find-file (getenv "DG_TEST_FILE"))
(setq-local lsp-enabled-clients '(dg))
(lsp-workspace-folders-add default-directory)
(lsp)
(dg-test-until (lambda () (and lsp--buffer-workspaces
                               (eq 'initialized (lsp--workspace-status (car lsp--buffer-workspaces))))))
(unless lsp-inline-completion-mode
  (error "Suggestions do not come by themselves"))
(defun dg-test-write (what)
  "Write WHAT to the file that the test reads."
  (with-temp-file "shown.json"
    (insert (json-serialize what))))

(defun dg-test-instructed (instruction)
  "Select to the end of the buffer, and rewrite that as INSTRUCTION says, by the second proposal if there is one.
Write what is shown, the text once it is accepted, and that after one undo."
  (let (shown)
    (setq transient-mark-mode t)
    (push-mark (point-max) t t)
    (undo-boundary)
    (cl-letf (((symbol-function 'read-string) (lambda (&rest _) instruction))
              ((symbol-function 'read-char-choice)
               (lambda (_ keys)
                 (push (buffer-string) shown)
                 (if (memq ?n keys) ?n ?a))))
      (call-interactively #'dg-rewrite))
    (let ((after (buffer-string)))
      (undo-boundary)
      (undo)
      (dg-test-write (vconcat (nreverse shown) (vector after (buffer-string)))))))

(defun dg-test-rewrite (title)
  "Select to the end of the buffer, run the code action TITLE, and write the text after it and after one undo."
  (let ((before (buffer-string)))
    (setq transient-mark-mode t)
    (push-mark (point-max) t t)
    (undo-boundary)
    (lsp-execute-code-action
     (dg-test-until (lambda () (seq-find (lambda (action) (equal (lsp:code-action-title action) title))
                                         (lsp-code-actions-at-point "refactor.rewrite")))))
    (dg-test-until (lambda () (not (equal (buffer-string) before))))
    (let ((after (buffer-string)))
      (deactivate-mark)
      (undo-boundary)
      (undo)
      (dg-test-write (vector after (buffer-string))))))

(defun dg-test-suggestion ()
  "Write what is suggested here, and accept it."
  (dg-test-write (dg-test-until #'dg-test-shown))
  (lsp-inline-completion-accept)
  (save-buffer))

(goto-char (+ (point-min) (string-to-number (getenv "DG_TEST_OFFSET"))))
(cond ((getenv "DG_TEST_ACTION") (dg-test-rewrite (getenv "DG_TEST_ACTION")))
      ((getenv "DG_TEST_INSTRUCTION") (dg-test-instructed (getenv "DG_TEST_INSTRUCTION")))
      (t (dg-test-suggestion)))
(kill-emacs 0)

;;; emacs.el ends here
