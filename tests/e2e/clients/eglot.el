;;; eglot.el --- What eglot does in place of a user  -*- lexical-binding: t; -*-

;;; Code:

(require 'eglot)
(require 'json)

(defun dg-test-until (holds)
  "Wait until HOLDS returns something, and return it."
  (let ((ends (+ (float-time) 60)) value)
    (while (and (not (setq value (funcall holds))) (< (float-time) ends))
      (accept-process-output nil 0.2))
    (or value (error "Waited in vain"))))

(setq eglot-sync-connect 30)
(add-to-list 'eglot-server-programs
             (cons 'python-mode (json-parse-string (getenv "DG_TEST_COMMAND") :array-type 'list)))
(setq-default eglot-workspace-configuration
              (list :dg-lsp (json-parse-string (getenv "DG_TEST_SETTINGS") :object-type 'plist)))
(find-file (getenv "DG_TEST_FILE"))
(python-mode)
(call-interactively #'eglot)
(dg-test-until #'eglot-current-server)
(goto-char (+ (point-min) (string-to-number (getenv "DG_TEST_OFFSET"))))
(let ((before (buffer-string)))
  (dg-test-until (lambda ()
                   (completion-at-point)
                   (not (equal before (buffer-string))))))
(save-buffer)
(kill-emacs 0)

;;; eglot.el ends here
